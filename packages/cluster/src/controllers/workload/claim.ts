import { controllerOf, controllerRef, isInvalid, isNotFound, type KubeClient, type KubeObject, keyOf, type ResourceType } from '@thv/kube'

export interface ClaimOptions<T extends KubeObject> {
  readonly client: KubeClient
  readonly owner: KubeObject
  readonly ownerType: ResourceType
  readonly type: ResourceType<T>
  /** Whether the owner wants it. */
  readonly matches: (object: T) => boolean
  readonly signal: AbortSignal
}

/**
 * Those of the objects that belong to the owner. An orphan that matches is adopted, an own one that does not match any more is let go.
 * Nothing is changed on behalf of an owner that is being deleted. When one of the changes fails the first error is thrown after all
 * were tried.
 */
export async function claim<T extends KubeObject>(objects: readonly T[], options: ClaimOptions<T>): Promise<T[]> {
  const { owner, matches } = options
  const deleting = owner.metadata.deletionTimestamp !== undefined
  const claimed: T[] = []
  const errors: unknown[] = []
  let mayAdopt: Promise<boolean> | undefined

  async function adopt(object: T): Promise<boolean> {
    mayAdopt ??= stillWanted(options)
    return (await mayAdopt) && (await adoptObject(object, options))
  }

  for (const object of objects) {
    try {
      const current = controllerOf(object)
      if (current === undefined) {
        if (deleting || object.metadata.deletionTimestamp !== undefined || !matches(object)) continue
        if (await adopt(object)) claimed.push(object)
      } else if (current.uid === owner.metadata.uid) {
        if (matches(object)) claimed.push(object)
        else if (!deleting) await release(object, options)
      }
    } catch (error) {
      errors.push(error)
    }
  }
  if (errors.length > 0) throw errors[0]
  return claimed
}

/** A cache may not know yet that the owner is being deleted, or is another one by now: then nothing may be adopted. */
async function stillWanted<T extends KubeObject>({ client, owner, ownerType, signal }: ClaimOptions<T>): Promise<boolean> {
  const fresh = await client.tryGet(ownerType, keyOf(owner), { signal })
  return fresh?.metadata.uid === owner.metadata.uid && fresh?.metadata.deletionTimestamp === undefined
}

/** The uid makes the patch fail when the name belongs to another object by now. */
async function adoptObject<T extends KubeObject>(object: T, options: ClaimOptions<T>): Promise<boolean> {
  const { client, owner, ownerType, type, signal } = options
  const metadata = { uid: object.metadata.uid, ownerReferences: [controllerRef(owner, ownerType)] }
  try {
    await client.patch(type, keyOf(object), { kind: 'strategic', body: { metadata } }, { signal })
    return true
  } catch (error) {
    if (isNotFound(error)) return false
    throw error
  }
}

/** Invalid means that it has no such owner any more, or is another object. */
async function release<T extends KubeObject>(object: T, { client, owner, type, signal }: ClaimOptions<T>): Promise<void> {
  const ownerReferences = [{ $patch: 'delete', uid: owner.metadata.uid }]
  const body = { metadata: { uid: object.metadata.uid, ownerReferences } }
  try {
    await client.patch(type, keyOf(object), { kind: 'strategic', body }, { signal })
  } catch (error) {
    if (!isNotFound(error) && !isInvalid(error)) throw error
  }
}
