import type { Deployment, ReplicaSet } from '../workload/workload-kinds.ts'
import type { DeploymentSettings } from './deployment-settings.ts'

export const REVISION = 'deployment.kubernetes.io/revision'
const REVISION_HISTORY = 'deployment.kubernetes.io/revision-history'
const DESIRED_REPLICAS = 'deployment.kubernetes.io/desired-replicas'
const MAX_REPLICAS = 'deployment.kubernetes.io/max-replicas'

/** Annotations of a Deployment that are its own business; its newest set gets a copy of the others. */
const NOT_COPIED: ReadonlySet<string> = new Set([
  'kubectl.kubernetes.io/last-applied-configuration',
  REVISION,
  REVISION_HISTORY,
  DESIRED_REPLICAS,
  MAX_REPLICAS,
  'deprecated.deployment.rollback.to',
])

const MAX_HISTORY_LENGTH = 2_000

type Annotations = Readonly<Record<string, string>>

/** 0 without one, undefined for one that is no number. */
export function revisionOf({ metadata }: ReplicaSet): number | undefined {
  const text = metadata.annotations?.[REVISION] ?? '0'
  return /^[+-]?[0-9]+$/.test(text) ? Number(text) : undefined
}

/** Of a set that is to be the newest: a higher number than all others, and the numbers that it had before. */
export function newestAnnotations(deployment: Deployment, set: ReplicaSet, revision: number): Annotations {
  const own = set.metadata.annotations ?? {}
  const copied = Object.entries(deployment.metadata.annotations ?? {}).filter(([name]) => !NOT_COPIED.has(name))
  const annotations: Record<string, string> = { ...own, ...Object.fromEntries(copied) }
  const before = revisionOf(set)
  if (before === undefined || before >= revision) return annotations
  annotations[REVISION] = String(revision)
  const old = own[REVISION]
  if (old !== undefined) annotations[REVISION_HISTORY] = longerHistory(own[REVISION_HISTORY] ?? '', old)
  return annotations
}

/** The oldest numbers make room. */
function longerHistory(history: string, revision: string): string {
  const numbers = history === '' ? [] : history.split(',')
  numbers.push(revision)
  while (numbers.join(',').length > MAX_HISTORY_LENGTH) numbers.shift()
  return numbers.join(',')
}

/** Number of replicas that the set was sized for: tells a change of the wanted number from a step of a rollout. */
export function sizeAnnotations({ replicas, maxSurge }: DeploymentSettings): Annotations {
  return { [DESIRED_REPLICAS]: String(replicas), [MAX_REPLICAS]: String(replicas + maxSurge) }
}

export function desiredReplicas(set: ReplicaSet): number | undefined {
  return naturalNumber(set.metadata.annotations?.[DESIRED_REPLICAS])
}

export function maxReplicas(set: ReplicaSet): number | undefined {
  return naturalNumber(set.metadata.annotations?.[MAX_REPLICAS])
}

function naturalNumber(text: string | undefined): number | undefined {
  return text !== undefined && /^[0-9]{1,10}$/.test(text) && Number(text) < 2 ** 31 ? Number(text) : undefined
}
