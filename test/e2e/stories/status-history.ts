import type { ResourceType } from '@thv/kube'
import type { Resource, ResourceStatus, World } from './world.ts'

/** All that a status has said since: polling would miss short-lived states. */
export interface StatusHistory extends AsyncDisposable {
  /** Oldest first. Throws when somebody has to look after the watch. */
  readonly seen: readonly ResourceStatus[]
}

/** Begins now; the object need not be there yet. */
export async function statusHistory({ client, namespace }: World, type: ResourceType<Resource>, name: string): Promise<StatusHistory> {
  const seen: ResourceStatus[] = []
  const over = new AbortController()
  let failure: unknown
  let resourceVersion = (await client.list(type, { namespace })).metadata.resourceVersion ?? ''

  /** A watch ends after some minutes; the next one goes on where it ended. */
  async function follow(): Promise<void> {
    while (!over.signal.aborted)
      for await (const { object } of client.watch(type, { namespace, resourceVersion, signal: over.signal })) {
        resourceVersion = object.metadata.resourceVersion ?? resourceVersion
        if (object.metadata.name === name && object.status !== undefined) seen.push(object.status)
      }
  }

  const following = follow().catch((error: unknown) => {
    if (!over.signal.aborted) failure = error
  })
  return {
    get seen() {
      if (failure !== undefined) throw failure
      return seen
    },
    async [Symbol.asyncDispose]() {
      over.abort()
      await following
    },
  }
}
