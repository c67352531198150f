import { setTimeout as sleep } from 'node:timers/promises'
import { createSharedCaches, deployments, type KubeClient, keyOf } from '@thv/kube'
import { mcpServerType } from '@thv/resources/kinds/mcp-server/schema'

const CONNECTIONS = 16
/** Without one more server that is done. A busy machine takes many minutes for a thousand, but never stands still. */
const STALLED_MS = 120_000

/** Many MCPServers, as fast as the API server takes them. */
export async function createServers(client: KubeClient, { namespace, count }: { namespace: string; count: number }): Promise<void> {
  await inParallel(
    Array.from({ length: count }, (_, index) => index),
    async (index) => {
      await client.create(mcpServerType, {
        metadata: { name: `server-${index}`, namespace },
        spec: { image: 'example.test/server:1', transport: 'streamable-http', env: [{ name: 'INDEX', value: String(index) }] },
      })
    },
  )
}

/** A change of every server that wakes the operator and asks it for nothing. Says how many there are. */
export async function changeServers(client: KubeClient, namespace: string): Promise<number> {
  const { items } = await client.listAll(mcpServerType, { namespace })
  const annotations = { 'mcpserver.toolhive.stacklok.dev/restart-strategy': 'rolling' }
  await inParallel(items, async (item) => {
    await client.patch(mcpServerType, keyOf(item), { kind: 'merge', body: { metadata: { annotations } } })
  })
  return items.length
}

export interface Progress {
  readonly settled: () => number
  readonly close: () => Promise<void>
}

/** Watched and not polled: lists of a thousand objects would keep the server from its work. */
export async function watchProgress(client: KubeClient, namespace: string): Promise<Progress> {
  const caches = createSharedCaches(client)
  const servers = caches.of(mcpServerType, { namespace })
  const made = caches.metadataOf(deployments, { namespace })
  await caches.waitForSync(AbortSignal.timeout(30_000))
  const hasStatus = new Set<string>()
  servers.addHandler(({ object }) => {
    if (object.status?.observedGeneration !== undefined && object.status.url !== undefined) hasStatus.add(object.metadata.name)
  })
  return { settled: () => Math.min(hasStatus.size, made.store.size), close: () => caches.close() }
}

export async function untilAllDone(progress: Progress, { started, count }: { started: number; count: number }): Promise<number> {
  let done = 0
  let doneAt = performance.now()
  while (done < count) {
    await sleep(20)
    const now = progress.settled()
    if (now > done) doneAt = performance.now()
    done = Math.max(done, now)
    if (performance.now() - doneAt > STALLED_MS) throw new Error(`${done} of ${count} servers are done, and no more for ${STALLED_MS} ms`)
  }
  return (performance.now() - started) / 1000
}

export async function inParallel<T>(items: readonly T[], work: (item: T) => Promise<void>): Promise<void> {
  const queue = items.values()
  await Promise.all(
    Array.from({ length: CONNECTIONS }, async () => {
      for (const item of queue) await work(item)
    }),
  )
}
