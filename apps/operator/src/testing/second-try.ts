import { isAlreadyExists, isNotFound, type KubeClient, type KubeObject, keyOf, type ObjectKey, type ResourceType } from '@thv/kube'
import { eventually } from './operator-harness.ts'

/* A test that failed runs once more in the same namespace, where its first try has left its objects. */

/** Deletes what a first try may have left, and waits until it is gone. */
export async function removeLeft(admin: KubeClient, type: ResourceType, key: ObjectKey): Promise<void> {
  await admin.delete(type, key).catch((error: unknown) => {
    if (!isNotFound(error)) throw error
  })
  await eventually(`the ${key.name} of before is gone`, async () => (await admin.tryGet(type, key)) === undefined)
}

/** Creates an object in place of one that a first try has left. */
export async function createFresh<T extends KubeObject>(admin: KubeClient, type: ResourceType<T>, object: T): Promise<T> {
  try {
    return await admin.create(type, object)
  } catch (error) {
    if (!isAlreadyExists(error)) throw error
    await removeLeft(admin, type, keyOf(object))
    return await admin.create(type, object)
  }
}
