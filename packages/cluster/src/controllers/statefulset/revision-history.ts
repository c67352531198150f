import { controllerRef, isAlreadyExists, isConflict, isNotFound, type KubeClient, keyOf, type Pod } from '@thv/kube'
import { canonicalJson, fnv1, safeName } from '../workload/template-hash.ts'
import {
  type ControllerRevision,
  controllerRevisions,
  type PodTemplate,
  type StatefulSet,
  statefulSets,
} from '../workload/workload-kinds.ts'
import { podRevision } from './pod-identity.ts'

type RevisionData = NonNullable<ControllerRevision['data']>

const HASH = 'controller.kubernetes.io/hash'

/** How often another name is tried before the next reconcile has to. */
const MAX_COLLISIONS = 16

export interface Revisions {
  /** The revision before the last change; the same as `update` when that is rolled out. */
  readonly current: ControllerRevision
  /** The revision of the present spec. */
  readonly update: ControllerRevision
  readonly collisionCount: number
}

export interface HistoryWriter {
  readonly client: KubeClient
  readonly signal: AbortSignal
}

/** Records the set's template if it is new. Going back to an older one gives that the highest number again. */
export async function syncRevisions(set: StatefulSet, known: readonly ControllerRevision[], writer: HistoryWriter): Promise<Revisions> {
  const ordered = known.toSorted(byNumber)
  const number = (ordered.at(-1)?.revision ?? 0) + 1
  const data = dataOf(set)
  const equal = ordered.findLast((revision) => isSame(revision.data, data))
  let collisionCount = set.status?.collisionCount ?? 0
  let update: ControllerRevision
  if (equal !== undefined && equal === ordered.at(-1)) update = equal
  else if (equal !== undefined)
    update = await writer.client.update(controllerRevisions, { ...equal, revision: number }, { signal: writer.signal })
  else ({ update, collisionCount } = await createRevision(set, { number, data, collisionCount }, writer))
  return { current: ordered.find(({ metadata }) => metadata.name === set.status?.currentRevision) ?? update, update, collisionCount }
}

export function templateOf({ data }: ControllerRevision): PodTemplate {
  const { $patch: _, ...template } = data?.spec?.template ?? {}
  return template
}

/** Deletes the oldest revisions that nothing uses any more, beyond the limit. */
export async function truncateHistory(
  known: readonly ControllerRevision[],
  { revisions, pods, limit }: { revisions: Revisions; pods: readonly Pod[]; limit: number },
  { client, signal }: HistoryWriter,
): Promise<void> {
  const live = new Set([revisions.current.metadata.name, revisions.update.metadata.name, ...pods.map(podRevision)])
  const history = known.toSorted(byNumber).filter(({ metadata }) => !live.has(metadata.name))
  for (const revision of history.slice(0, Math.max(0, history.length - limit))) {
    try {
      await client.delete(controllerRevisions, keyOf(revision), { preconditions: { uid: revision.metadata.uid }, signal })
    } catch (error) {
      if (!isNotFound(error) && !isConflict(error)) throw error
    }
  }
}

interface NewRevision {
  readonly number: number
  readonly data: RevisionData
  readonly collisionCount: number
}

/** The name follows from the content, so a second try finds the first one's. */
async function createRevision(
  set: StatefulSet,
  { number, data, collisionCount }: NewRevision,
  { client, signal }: HistoryWriter,
): Promise<{ update: ControllerRevision; collisionCount: number }> {
  for (let count = collisionCount; ; count++) {
    const revision = newRevision(set, { number, data, collisionCount: count })
    try {
      return { update: await client.create(controllerRevisions, revision, { signal }), collisionCount: count }
    } catch (error) {
      if (!isAlreadyExists(error) || count - collisionCount > MAX_COLLISIONS) throw error
      const found = await client.get(controllerRevisions, keyOf(revision), { signal })
      if (isSame(found.data, data)) return { update: found, collisionCount: count }
    }
  }
}

function newRevision(set: StatefulSet, { number, data, collisionCount }: NewRevision): ControllerRevision {
  const { name, namespace, annotations } = set.metadata
  const hash = safeName(fnv1(Buffer.from(`${goJson(data)}${collisionCount}`)))
  return {
    metadata: {
      name: `${name.slice(0, 223)}-${hash}`,
      ...(namespace === undefined ? {} : { namespace }),
      labels: { ...set.spec?.template?.metadata?.labels, [HASH]: hash },
      ...(annotations === undefined ? {} : { annotations: { ...annotations } }),
      ownerReferences: [controllerRef(set, statefulSets)],
    },
    revision: number,
    data,
  }
}

/** As a strategic patch that puts the template back: kubectl rolls back with it. */
function dataOf(set: StatefulSet): RevisionData {
  return { spec: { template: { ...set.spec?.template, $patch: 'replace' } } }
}

function isSame(a: ControllerRevision['data'], b: ControllerRevision['data']): boolean {
  return canonicalJson(a) === canonicalJson(b)
}

/** The hash is over this text: with it a set has the same revisions wherever it runs. */
function goJson(data: unknown): string {
  return canonicalJson(data).replace(/[<>&\u2028\u2029]/g, (char) => `\\u${char.charCodeAt(0).toString(16).padStart(4, '0')}`)
}

function byNumber(a: ControllerRevision, b: ControllerRevision): number {
  const [first, second] = [a.metadata.creationTimestamp ?? '', b.metadata.creationTimestamp ?? '']
  if (a.revision !== b.revision) return a.revision - b.revision
  if (first !== second) return first < second ? -1 : 1
  return a.metadata.name < b.metadata.name ? -1 : 1
}
