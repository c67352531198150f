import { jsonEqual } from '@thv/kernel/json'
import { controllerRef, isAlreadyExists, isControlledBy, type KubeClient, keyOf } from '@thv/kube'
import { templateHash } from '../workload/template-hash.ts'
import { type Deployment, deployments, type ReplicaSet, replicaSets } from '../workload/workload-kinds.ts'
import type { DeploymentSettings } from './deployment-settings.ts'
import type { Sets } from './proportional-scale.ts'
import { byAge } from './replica-set-order.ts'
import { newestSize } from './rolling-step.ts'
import { newestAnnotations, revisionOf, sizeAnnotations } from './rollout-annotations.ts'
import { hasTemplateOf, TEMPLATE_HASH } from './template-equality.ts'

/** Of several sets with the wanted template the oldest is the newest revision, so that it is always the same one. */
export function sortSets(deployment: Deployment, sets: readonly ReplicaSet[]): Sets {
  const ordered = sets.toSorted(byAge)
  const newest = ordered.find((set) => hasTemplateOf(set, deployment))
  return { newest, old: ordered.filter((set) => set !== newest) }
}

export interface SetWriter {
  readonly client: KubeClient
  readonly signal: AbortSignal
}

/** The newest set with the revision, annotations and minimum time that it should have. */
export async function updateNewest(
  deployment: Deployment,
  { newest, old }: Sets & { newest: ReplicaSet },
  { client, signal }: SetWriter,
): Promise<ReplicaSet> {
  const annotations = newestAnnotations(deployment, newest, nextRevision(old))
  const minReadySeconds = deployment.spec?.minReadySeconds ?? 0
  const same = minReadySeconds === (newest.spec?.minReadySeconds ?? 0) && jsonEqual(annotations, newest.metadata.annotations ?? {})
  if (same) return newest
  const wanted = { ...newest, metadata: { ...newest.metadata, annotations }, spec: { ...newest.spec, minReadySeconds } }
  return await client.update(replicaSets, wanted, { signal })
}

export type CreatedSet =
  | { readonly set: ReplicaSet; readonly created: boolean }
  /** The name is taken by a set with another template, or by somebody else's. */
  | 'collision'

/** Its name follows from the template, so a second try finds the first one's. */
export async function createNewest(
  deployment: Deployment,
  old: readonly ReplicaSet[],
  { client, signal, settings }: SetWriter & { settings: DeploymentSettings },
): Promise<CreatedSet> {
  const set = newSet(deployment, old, settings)
  try {
    return { set: await client.create(replicaSets, set, { signal }), created: true }
  } catch (error) {
    if (!isAlreadyExists(error)) throw error
    const found = await client.get(replicaSets, keyOf(set), { signal })
    return isControlledBy(found, deployment) && hasTemplateOf(found, deployment) ? { set: found, created: false } : 'collision'
  }
}

export function newSetName(deployment: Deployment): string {
  const hash = hashOf(deployment)
  return `${deployment.metadata.name.slice(0, 253 - 1 - hash.length)}-${hash}`
}

function newSet(deployment: Deployment, old: readonly ReplicaSet[], settings: DeploymentSettings): ReplicaSet {
  const { selector, template = {} } = deployment.spec ?? {}
  const { namespace } = deployment.metadata
  const hash = { [TEMPLATE_HASH]: hashOf(deployment) }
  const labels = { ...template.metadata?.labels, ...hash }
  const empty: ReplicaSet = {
    metadata: {
      name: newSetName(deployment),
      ...(namespace === undefined ? {} : { namespace }),
      labels,
      ownerReferences: [controllerRef(deployment, deployments)],
    },
    spec: {
      replicas: 0,
      minReadySeconds: settings.minReadySeconds,
      selector: { ...selector, matchLabels: { ...selector?.matchLabels, ...hash } },
      template: { ...template, metadata: { ...template.metadata, labels } },
    },
  }
  const annotations = { ...newestAnnotations(deployment, empty, nextRevision(old)), ...sizeAnnotations(settings) }
  return {
    ...empty,
    metadata: { ...empty.metadata, annotations },
    spec: { ...empty.spec, replicas: newestSize(empty, old, settings) },
  }
}

function hashOf({ spec, status }: Deployment): string {
  return templateHash(spec?.template ?? {}, status?.collisionCount)
}

function nextRevision(old: readonly ReplicaSet[]): number {
  return Math.max(0, ...old.map((set) => revisionOf(set) ?? 0)) + 1
}
