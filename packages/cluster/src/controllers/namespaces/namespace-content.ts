import type { KubeClient, KubeObject } from '@thv/kube'
import type { ServedResource } from '../served-resources.ts'

/** Remaining objects of one kind in a namespace after the request to delete them. */
export interface Remainder {
  readonly resource: ServedResource
  readonly count: number
  readonly finalizers: ReadonlyMap<string, number>
}

/** Deletes all objects of one kind in a namespace and says what is still there. */
export async function deleteContent(
  client: KubeClient,
  { resource, namespace }: { resource: ServedResource; namespace: string },
  signal: AbortSignal,
): Promise<Remainder> {
  const found = await list(client, resource, { namespace, signal })
  const fresh = found.filter(({ metadata }) => metadata.deletionTimestamp === undefined)
  if (fresh.length > 0) await deleteAll(client, resource, { namespace, objects: fresh, signal })
  return remainderOf(resource, fresh.length > 0 ? await list(client, resource, { namespace, signal }) : found)
}

async function list(
  client: KubeClient,
  resource: ServedResource,
  scope: { namespace: string; signal: AbortSignal },
): Promise<KubeObject[]> {
  return resource.verbs.includes('list') ? (await client.listAll(resource, scope)).items : []
}

async function deleteAll(
  client: KubeClient,
  resource: ServedResource,
  { namespace, objects, signal }: { namespace: string; objects: readonly KubeObject[]; signal: AbortSignal },
): Promise<void> {
  const propagationPolicy = 'Background'
  if (resource.verbs.includes('deletecollection')) {
    await client.deleteCollection(resource, { namespace, propagationPolicy, signal })
    return
  }
  for (const { metadata } of objects)
    await client.delete(resource, { namespace, name: metadata.name }, { propagationPolicy, preconditions: { uid: metadata.uid }, signal })
}

function remainderOf(resource: ServedResource, objects: readonly KubeObject[]): Remainder {
  const finalizers = new Map<string, number>()
  for (const { metadata } of objects)
    for (const finalizer of metadata.finalizers ?? []) finalizers.set(finalizer, (finalizers.get(finalizer) ?? 0) + 1)
  return { resource, count: objects.length, finalizers }
}
