import { controllerOf, type KubeObject, type ObjectReference, type Pod, pods, type ResourceType } from '@thv/kube'
import { isReady, isTerminating } from '../../pod-state.ts'
import {
  type ControllerRevision,
  controllerRevisions,
  type Deployment,
  deployments,
  type PodTemplate,
  type ReplicaSet,
  replicaSets,
  type StatefulSet,
  statefulSets,
  type WorkloadCondition,
} from '../../workload-kinds.ts'

/** Content of a namespace, without parts that differ from run to run: times, uids, random parts of names, hashes. */
export interface Snapshot {
  readonly deployments?: Readonly<Record<string, unknown>>
  readonly replicaSets?: Readonly<Record<string, unknown>>
  readonly statefulSets?: Readonly<Record<string, unknown>>
  readonly revisions?: Readonly<Record<string, unknown>>
  /** Equal ones together, with their number. */
  readonly pods?: Readonly<Record<string, number>>
  readonly events?: readonly string[]
}

/** Hashes are distinguished by their meaning: the tag of the template's image. */
type Rename = (text: string) => string

/** All objects of a kind in the scenario's namespace. */
export type Lister = <T extends KubeObject>(type: ResourceType<T>) => Promise<readonly T[]>

/** In the form of the core group, which the real controllers write and both servers store. */
interface CoreEvent extends KubeObject {
  involvedObject?: ObjectReference
  type?: string
  reason?: string
  message?: string
}

const events: ResourceType<CoreEvent> = { group: '', version: 'v1', kind: 'Event', plural: 'events', namespaced: true }

export async function takeSnapshot(list: Lister, namespace: string): Promise<Snapshot> {
  const [podList, sets, deploymentList, statefulList, revisions, eventList] = await Promise.all([
    list(pods),
    list(replicaSets),
    list(deployments),
    list(statefulSets),
    list(controllerRevisions),
    list(events),
  ])
  const rename = renames(sets, revisions, namespace)
  return withoutEmpty({
    deployments: byName(deploymentList, deploymentPart, rename),
    replicaSets: byName(sets, replicaSetPart, rename),
    statefulSets: byName(statefulList, statefulSetPart, rename),
    revisions: byName(revisions, revisionPart, rename),
    pods: counted(podList.map((pod) => JSON.stringify(cleaned(podPart(pod), rename)))),
    events: [...new Set(eventList.filter(isOurs).map((event) => eventText(event, rename)))].sort(),
  })
}

function renames(sets: readonly ReplicaSet[], revisions: readonly ControllerRevision[], namespace: string): Rename {
  const pairs: [string, string][] = [[namespace, 'NAMESPACE']]
  for (const set of sets) {
    const hash = set.metadata.labels?.['pod-template-hash']
    if (hash !== undefined && controllerOf(set) !== undefined) pairs.push([hash, `#${tagOf(set.spec?.template)}`])
  }
  for (const revision of revisions) {
    const hash = revision.metadata.labels?.['controller.kubernetes.io/hash']
    if (hash !== undefined) pairs.push([hash, `#${tagOf(revision.data?.spec?.template)}`])
  }
  return (text) =>
    pairs.reduce((result, [hash, alias]) => result.replaceAll(hash, alias), text).replace(/^(.*#[a-z0-9]+)-[a-z0-9]{5}$/, '$1-*')
}

function tagOf(template: PodTemplate | undefined): string {
  return template?.spec?.containers[0]?.image?.split(':')[1] ?? ''
}

function deploymentPart({ metadata, status = {} }: Deployment): unknown {
  const { observedGeneration, conditions = [], ...counts } = status
  return {
    annotations: metadata.annotations ?? {},
    observed: observedGeneration === metadata.generation,
    status: counts,
    conditions: conditions.map(conditionPart).sort(byText),
  }
}

function replicaSetPart({ metadata, spec, status }: ReplicaSet): unknown {
  const { observedGeneration, conditions = [], ...counts } = status ?? { replicas: 0 }
  return {
    ...ownership(metadata),
    selector: spec?.selector,
    templateLabels: spec?.template?.metadata?.labels ?? {},
    image: spec?.template?.spec?.containers[0]?.image ?? '',
    replicas: spec?.replicas,
    minReadySeconds: spec?.minReadySeconds ?? 0,
    observed: observedGeneration === metadata.generation,
    status: counts,
    conditions: conditions.map(conditionPart).sort(byText),
  }
}

function statefulSetPart({ metadata, status }: StatefulSet): unknown {
  const { observedGeneration, ...counts } = status ?? { replicas: 0 }
  return { observed: observedGeneration === metadata.generation, status: counts }
}

function revisionPart({ metadata, revision, data }: ControllerRevision): unknown {
  return { ...ownership(metadata), revision, patch: data?.spec?.template?.$patch }
}

function podPart(pod: Pod): object {
  const { metadata, spec, status } = pod
  const hasName = metadata.generateName === undefined || controllerOf(pod)?.kind === 'StatefulSet'
  return {
    name: hasName ? metadata.name : '',
    generateName: metadata.generateName ?? '',
    ...ownership(metadata),
    finalizers: metadata.finalizers ?? [],
    image: spec?.containers[0]?.image,
    hostname: spec?.['hostname'] ?? '',
    subdomain: spec?.['subdomain'] ?? '',
    phase: status?.phase ?? '',
    ready: isReady(pod),
    terminating: isTerminating(pod),
  }
}

function ownership({ labels, annotations, ownerReferences }: KubeObject['metadata']): object {
  const owners = (ownerReferences ?? []).map(({ uid: _, ...reference }) => reference)
  return { labels: labels ?? {}, annotations: annotations ?? {}, owners }
}

function conditionPart({ type, status, reason, message }: WorkloadCondition): string {
  return `${type}=${status} ${reason}: ${message}`
}

const OURS: ReadonlySet<string> = new Set(['Deployment', 'ReplicaSet', 'StatefulSet'])

function isOurs({ involvedObject }: CoreEvent): boolean {
  return OURS.has(involvedObject?.kind ?? '')
}

function eventText({ involvedObject, type, reason, message = '' }: CoreEvent, rename: Rename): string {
  const text = rename(message).replace(/^((?:Created|Deleted) pod: .*)-[a-z0-9]{5}$/, '$1-*')
  return `${involvedObject?.kind} ${rename(involvedObject?.name ?? '')}: ${type} ${reason}: ${text}`
}

function byName<T extends KubeObject>(objects: readonly T[], part: (object: T) => unknown, rename: Rename): Record<string, unknown> {
  return Object.fromEntries(
    objects.map((object) => [rename(object.metadata.name), cleaned(part(object), rename)] as const).sort(([a], [b]) => byText(a, b)),
  )
}

/** Renames in all texts, also those that are names of members. */
function cleaned(value: unknown, rename: Rename): unknown {
  if (typeof value === 'string') return rename(value)
  if (Array.isArray(value)) return value.map((item) => cleaned(item, rename))
  if (typeof value !== 'object' || value === null) return value
  const members = Object.entries(value).filter(([, member]) => member !== undefined)
  return Object.fromEntries(members.map(([name, member]) => [name, cleaned(member, rename)] as const).sort(([a], [b]) => byText(a, b)))
}

function counted(texts: readonly string[]): Record<string, number> {
  const counts = new Map<string, number>()
  for (const text of texts.toSorted(byText)) counts.set(text, (counts.get(text) ?? 0) + 1)
  return Object.fromEntries(counts)
}

function withoutEmpty(snapshot: Snapshot): Snapshot {
  return Object.fromEntries(Object.entries(snapshot).filter(([, value]) => Object.keys(value).length > 0))
}

function byText(a: string, b: string): number {
  return a < b ? -1 : a > b ? 1 : 0
}
