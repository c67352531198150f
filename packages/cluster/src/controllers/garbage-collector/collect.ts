import {
  done,
  dropFinalizer,
  isConflict,
  isNotFound,
  type KubeClient,
  type KubeObject,
  type ObjectKey,
  type Outcome,
  type OwnerReference,
  retry,
} from '@thv/kube'
import type { ServedResource } from '../served-resources.ts'
import {
  blocks,
  FOREGROUND,
  type GraphNode,
  type Identity,
  isDeletingDependents,
  isNamed,
  isOrphaning,
  ORPHAN,
  type OwnerGraph,
} from './owner-graph.ts'

export interface CollectEnv {
  readonly client: KubeClient
  readonly graph: OwnerGraph
  /** Undefined when the server does not serve the kind. */
  readonly find: (apiVersion: string, kind: string) => ServedResource | undefined
  readonly wake: (uid: string) => void
  /** States of objects whose deletion the server has taken; what follows from it comes by their watch. */
  readonly asked: WeakSet<GraphNode>
}

/**
 * Does what an object's owners, or its own deletion, ask for. Every write is bound to the version that the decision was made on: a cache
 * that lags costs another try, never an object.
 */
export async function collect(node: GraphNode, env: CollectEnv, signal: AbortSignal): Promise<Outcome> {
  const { apiVersion, kind } = node.identity
  const type = env.find(apiVersion, kind)
  if (type === undefined) return node.isVirtual ? retry(`${kind} of ${apiVersion} is not served`) : done
  const item: Item = { node, type, env, signal }
  try {
    if (node.isVirtual) return await verify(item)
    if (isOrphaning(node)) return await releaseDependents(item)
    if (isDeletingDependents(node)) return await endForeground(item)
    if (node.isBeingDeleted || node.owners.length === 0 || env.asked.has(node)) return done
    return await judge(item)
  } catch (error) {
    if (isConflict(error)) return retry('the object has changed')
    if (isNotFound(error)) return done // its watch tells
    throw error
  }
}

interface Item {
  readonly node: GraphNode
  readonly type: ServedResource
  readonly env: CollectEnv
  readonly signal: AbortSignal
}

/** An object names this owner; no watch has shown it. */
async function verify({ node, type, env, signal }: Item): Promise<Outcome> {
  const { identity } = node
  if (type.namespaced && identity.namespace === '') return done // cannot be an owner, which is for people to mend
  const live = await env.client.tryGet(type, placeOf(type, identity), { signal })
  if (live?.metadata.uid === identity.uid) return retry('its watch has not shown it yet')
  env.graph.removeVirtual(identity)
  return done
}

async function judge(item: Item): Promise<Outcome> {
  const { node, env } = item
  const verdict = await classify(item)
  if (typeof verdict === 'string') return verdict === 'unknown' ? retry('an owner is of a kind that is not served') : done
  const { solid, waiting } = verdict
  if (solid.length === node.owners.length) return done
  if (solid.length > 0) {
    await setOwners(item, solid)
    return done
  }
  const dependents = env.graph.dependentsOf(node)
  if (waiting.length > 0 && dependents.length > 0) {
    // In a circle everybody would wait for everybody.
    const version = dependents.some(isDeletingDependents) ? await unblock(item) : node.resourceVersion
    await remove(item, 'Foreground', version)
  } else {
    const own = node.finalizers.includes(ORPHAN) ? 'Orphan' : node.finalizers.includes(FOREGROUND) ? 'Foreground' : 'Background'
    await remove(item, own, node.resourceVersion)
  }
  return done
}

interface Verdict {
  /** Owners that are there. */
  readonly solid: OwnerReference[]
  /** Owners that go, and wait for their dependents to go first. */
  readonly waiting: OwnerReference[]
}

/** `impossible`: an object without a namespace names an owner that has one. */
async function classify(item: Item): Promise<Verdict | 'unknown' | 'impossible'> {
  const verdict: Verdict = { solid: [], waiting: [] }
  for (const reference of item.node.owners) {
    const state = await ownerState(item, reference)
    if (state === 'unknown' || state === 'impossible') return state
    if (state !== 'absent') verdict[state].push(reference)
  }
  return verdict
}

async function ownerState(
  { node, env, signal }: Item,
  reference: OwnerReference,
): Promise<'solid' | 'waiting' | 'absent' | 'unknown' | 'impossible'> {
  const { apiVersion, kind, name, uid } = reference
  const { namespace } = node.identity
  const identity = { apiVersion, kind, namespace, name, uid }
  const clusterWide = { ...identity, namespace: '' }
  if (env.graph.isAbsent(identity) || env.graph.isAbsent(clusterWide)) return 'absent'
  const known = env.graph.get(uid)
  // An object that is seen here and has gone since comes back by its deletion; a deletion that has begun is not undone.
  if (known !== undefined && !known.isVirtual && isNamed(reference, known.identity) && ['', namespace].includes(known.identity.namespace))
    return isDeletingDependents(known) ? 'waiting' : 'solid'
  const type = env.find(apiVersion, kind)
  if (type === undefined) return 'unknown'
  if (type.namespaced && namespace === '') return 'impossible'
  const live = await env.client.tryGet(type, placeOf(type, identity), { signal })
  if (live?.metadata.uid !== uid) {
    env.graph.noteAbsent(type.namespaced ? identity : clusterWide)
    return 'absent'
  }
  return live.metadata.deletionTimestamp !== undefined && live.metadata.finalizers?.includes(FOREGROUND) ? 'waiting' : 'solid'
}

async function remove(
  { node, type, env, signal }: Item,
  propagationPolicy: 'Foreground' | 'Background' | 'Orphan',
  resourceVersion: string,
) {
  const preconditions = { uid: node.identity.uid, resourceVersion }
  await env.client.delete(type, placeOf(type, node.identity), { preconditions, propagationPolicy, signal })
  env.asked.add(node)
}

async function setOwners({ node, type, env, signal }: Item, owners: readonly OwnerReference[]): Promise<KubeObject> {
  const { uid } = node.identity
  const metadata = { uid, resourceVersion: node.resourceVersion, ownerReferences: owners.length > 0 ? owners : null }
  return await env.client.patch(type, placeOf(type, node.identity), { kind: 'merge', body: { metadata } }, { signal })
}

async function unblock(item: Item): Promise<string> {
  const { owners, resourceVersion } = item.node
  if (!owners.some(({ blockOwnerDeletion }) => blockOwnerDeletion)) return resourceVersion
  const { metadata } = await setOwners(
    item,
    owners.map((owner) => ({ ...owner, blockOwnerDeletion: false })),
  )
  return metadata.resourceVersion ?? ''
}

/** Goes when no owner holds it any more. */
async function endForeground(item: Item): Promise<Outcome> {
  const { node, env } = item
  const { uid } = node.identity
  const blocking = env.graph.dependentsOf(node).filter((dependent) => blocks(dependent, uid))
  if (blocking.length === 0) await dropOwn(item, FOREGROUND)
  for (const dependent of blocking) if (!isDeletingDependents(dependent)) env.wake(dependent.identity.uid)
  return done
}

const AT_ONCE = 8

/** Its dependents stay, without it. */
async function releaseDependents(item: Item): Promise<Outcome> {
  const { node, env } = item
  const left = env.graph.dependentsOf(node)
  const release = async () => {
    for (let dependent = left.pop(); dependent; dependent = left.pop()) await releaseOne(item, dependent)
  }
  await Promise.all(Array.from({ length: AT_ONCE }, release))
  await dropOwn(item, ORPHAN)
  return done
}

async function releaseOne({ node: { identity }, env, signal }: Item, node: GraphNode): Promise<void> {
  const type = env.find(node.identity.apiVersion, node.identity.kind)
  if (type === undefined) return
  const owners = node.owners.filter(({ uid }) => uid !== identity.uid)
  await setOwners({ node, type, env, signal }, owners).catch((error: unknown) => {
    if (!isNotFound(error)) throw error
  })
}

async function dropOwn({ node, type, env, signal }: Item, name: string): Promise<void> {
  const { uid, namespace, name: own } = node.identity
  const metadata = { ...(namespace === '' ? {} : { namespace }), name: own, uid, finalizers: [...node.finalizers] }
  await dropFinalizer(env.client, { type, object: { metadata }, name }, { signal })
}

/** References do not say whether their owner has a namespace; its kind does. */
function placeOf(type: ServedResource, { namespace, name }: Identity): ObjectKey {
  return type.namespaced ? { namespace, name } : { name }
}
