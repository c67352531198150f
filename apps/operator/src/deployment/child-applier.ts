import { hash } from 'node:crypto'
import {
  compareResourceVersions,
  controllerOf,
  formatKey,
  isAlreadyExists,
  isConflict,
  isControlledBy,
  isNotFound,
  type KubeClient,
  type KubeObject,
  keyOf,
  type ObjectKey,
  onlyIfAbsent,
  onlyIfSame,
  type ResourceType,
  setControllerReference,
  withoutManagedFields,
} from '@thv/kube'
import type { KindCache } from '../caches/kind-cache.ts'
import { covers } from './is-subset.ts'
import { hasMoreData, patchOf } from './large-patch.ts'

/** Owns the fields that the operator sets in the objects it makes. */
export const FIELD_MANAGER = 'toolhive-operator'
/** Of what was last applied: when it differs something may have to be taken away, which a look at the live object cannot tell. */
export const APPLIED_HASH_ANNOTATION = 'toolhive.stacklok.dev/applied-hash'

export interface Child<T extends KubeObject = KubeObject> {
  readonly type: ResourceType<T>
  readonly cache: KindCache<T>
  /** Without owner reference. */
  readonly object: T
  /**
   * A ConfigMap of up to a megabyte whose data are the operator's alone: others add nothing to them. Written without server-side apply, which
   * costs the API server several times as much.
   */
  readonly isLarge?: boolean
}

export interface Owner {
  readonly object: KubeObject
  readonly type: ResourceType
}

export type ChildOutcome = { readonly kind: 'unchanged' | 'applied' } | ForeignChild

/** Somebody else's object has the name. It is left alone. */
export interface ForeignChild {
  readonly kind: 'foreign'
  readonly name: string
  readonly childKind: string
  /** As `Kind name`; undefined without an owner. */
  readonly controller: string | undefined
}

export interface ChildApplier {
  /** The object as the cache has it, or as our last apply left it when the cache has not caught up with that yet. */
  latest<T extends KubeObject>(place: Pick<Child<T>, 'type' | 'cache'>, key: ObjectKey): T | undefined
  /** Makes the child as wanted; sends nothing when it is. Never touches an object that the owner does not control. */
  ensure<T extends KubeObject>(owner: Owner, child: Child<T>, signal: AbortSignal): Promise<ChildOutcome>
  /** Deletes a child that is no longer wanted, if it is there and the owner's. */
  remove<T extends KubeObject>(owner: Owner, child: Pick<Child<T>, 'type' | 'cache'> & { name: string }, signal: AbortSignal): Promise<void>
}

/**
 * Server-side apply by force: fields that we set are ours, also when others changed them; fields that others added stay. The cache tells whether
 * there is anything to send: by a hash of what was last applied, and by whether the live object still has all of it.
 */
export function createChildApplier(client: Pick<KubeClient, 'apply' | 'create' | 'delete' | 'patch' | 'tryGet'>): ChildApplier {
  /** The stored form of objects that the server writes in another way than we do; without it they would be applied again and again. */
  const rewritten = new Map<string, string>()

  const hashed = new WeakMap<KubeObject, { uid: string | undefined; name: string; wanted: KubeObject }>()

  /** The object applied last, until the cache has it: a plan made from an older state would take back what was just begun. */
  const applied = new Map<string, KubeObject>()

  function latest<T extends KubeObject>({ type, cache }: Pick<Child<T>, 'type' | 'cache'>, key: ObjectKey): T | undefined {
    const id = idOf(type, key)
    const cached = cache.get(key)
    const own = applied.get(id) as T | undefined
    if (own === undefined) return cached
    // Not in the cache: it may have been deleted since, and then it must be created again.
    const isBehind =
      cached !== undefined &&
      cached.metadata.uid === own.metadata.uid &&
      (compareResourceVersions(cached.metadata.resourceVersion, own.metadata.resourceVersion) ?? 0) < 0
    if (isBehind) return own
    applied.delete(id)
    return cached
  }

  async function ensure<T extends KubeObject>(owner: Owner, child: Child<T>, signal: AbortSignal): Promise<ChildOutcome> {
    const { isLarge = false } = child
    const wanted = wantedOf(child.object, owner, isLarge)
    const key = keyOf(wanted)
    const live = latest(child, key)
    if (live !== undefined && !isOurs(live, owner)) return foreign(live, child.type)
    const id = idOf(child.type, key)
    if (live !== undefined && isAsApplied(live, wanted, rewritten.get(id)) && !(isLarge && hasMoreData(live, wanted)))
      return { kind: 'unchanged' }

    const { result, taken } = await apply(owner, { ...child, object: wanted }, { live, signal })
    if (taken !== undefined) return foreign(taken, child.type)
    applied.set(id, withoutManagedFields(result))
    if (covers(result, wanted)) rewritten.delete(id)
    else rewritten.set(id, versionOf(result))
    return { kind: 'applied' }
  }

  /** The same object for the same child as long as its owner is the same: large ones are hashed once. */
  function wantedOf<T extends KubeObject>(object: T, owner: Owner, isLarge: boolean): T {
    const { uid, name } = owner.object.metadata
    const known = hashed.get(object)
    if (known !== undefined && known.uid === uid && known.name === name) return known.wanted as T
    const wanted = withHash(setControllerReference(object, owner), isLarge)
    hashed.set(object, { uid, name, wanted })
    return wanted
  }

  /** Always by force, and never on an object that was not looked at: it creates, or updates the very object that is ours. */
  async function apply<T extends KubeObject>(
    owner: Owner,
    { type, object, isLarge = false }: Child<T>,
    { live, signal }: { live: T | undefined; signal: AbortSignal },
  ): Promise<{ result: T; taken?: undefined } | { result?: undefined; taken: KubeObject }> {
    const options = { fieldManager: FIELD_MANAGER, force: true, signal }
    const update = async (existing: T) => ({
      result: isLarge
        ? await client.patch(
            type,
            keyOf(object),
            { kind: 'merge', body: patchOf(object, existing) },
            { fieldManager: FIELD_MANAGER, signal },
          )
        : await client.apply(type, onlyIfSame(object, existing), options),
    })
    if (live !== undefined) return await update(live)
    try {
      const create = () => client.create(type, object, { fieldManager: FIELD_MANAGER, signal })
      return { result: isLarge ? await create() : await client.apply(type, onlyIfAbsent(object), options) }
    } catch (error) {
      if (!isConflict(error) && !isAlreadyExists(error)) throw error
      // The cache is behind: the object exists.
      const existing = await client.tryGet(type, keyOf(object), { signal })
      if (existing === undefined) throw error
      return isOurs(existing, owner) ? await update(existing) : { taken: existing }
    }
  }

  async function remove<T extends KubeObject>(
    owner: Owner,
    { type, cache, name }: Pick<Child<T>, 'type' | 'cache'> & { name: string },
    signal: AbortSignal,
  ): Promise<void> {
    const { namespace } = owner.object.metadata
    const key = namespace === undefined ? { name } : { namespace, name }
    const live = cache.get(key)
    if (live === undefined || live.metadata.deletionTimestamp !== undefined || !isControlledBy(live, owner.object)) return
    rewritten.delete(idOf(type, key))
    applied.delete(idOf(type, key))
    await deleteIfSame(client, { type, live, signal })
  }

  return { latest, ensure, remove }
}

function idOf(type: ResourceType, key: ObjectKey): string {
  return `${type.plural}/${formatKey(key)}`
}

/** Also an object of ours that lost its owner with its workload: the hash is the sign that we made it. */
export function isOurs(live: KubeObject, owner: Owner): boolean {
  if (isControlledBy(live, owner.object)) return true
  return controllerOf(live) === undefined && live.metadata.annotations?.[APPLIED_HASH_ANNOTATION] !== undefined
}

async function deleteIfSame(
  client: Pick<KubeClient, 'delete'>,
  { type, live, signal }: { type: ResourceType; live: KubeObject; signal: AbortSignal },
): Promise<void> {
  try {
    await client.delete(type, keyOf(live), { preconditions: { uid: live.metadata.uid }, propagationPolicy: 'Background', signal })
  } catch (error) {
    // Gone, or another object has the name by now.
    if (!isNotFound(error) && !isConflict(error)) throw error
  }
}

function isAsApplied(live: KubeObject, wanted: KubeObject, rewrittenVersion: string | undefined): boolean {
  if (live.metadata.annotations?.[APPLIED_HASH_ANNOTATION] !== wanted.metadata.annotations?.[APPLIED_HASH_ANNOTATION]) return false
  return covers(live, wanted) || versionOf(live) === rewrittenVersion
}

/** A change of the status is no change to us; `generation` says so for kinds that have one. */
function versionOf({ metadata }: KubeObject): string {
  return `${metadata.uid}/${metadata.generation ?? metadata.resourceVersion}`
}

/** The data of a large object are compared as they are, and never have anything that must be taken away unseen. */
function withHash<T extends KubeObject>(object: T, isLarge: boolean): T {
  const applied = hash('sha256', JSON.stringify(isLarge ? { ...object, data: undefined } : object)).slice(0, 16)
  return {
    ...object,
    metadata: { ...object.metadata, annotations: { ...object.metadata.annotations, [APPLIED_HASH_ANNOTATION]: applied } },
  }
}

function foreign(live: KubeObject, type: ResourceType): ForeignChild {
  const controller = controllerOf(live)
  return {
    kind: 'foreign',
    name: live.metadata.name,
    childKind: type.kind,
    controller: controller === undefined ? undefined : `${controller.kind} ${controller.name}`,
  }
}
