import { type MessagePort, parentPort, workerData } from 'node:worker_threads'
import { searchIndexTransferList } from '@thv/catalog/search/search-index-data'
import { snapshotTransferList } from '@thv/catalog/snapshot/snapshot-data'
import { createHandlers } from '@thv/catalog/sources/handlers'
import { createOutbound } from '@thv/http/outbound/outbound'
import { systemClock } from '@thv/kernel/clock'
import { releaseMemoryWhenIdle } from '@thv/kernel/idle-memory'
import type { Logger } from '@thv/telemetry/log'
import { openPostgresStore } from '../store/postgres/postgres-store.ts'
import type { RegistryStore } from '../store/registry-store.ts'
import { openSqliteStore } from '../store/sqlite/sqlite-store.ts'
import { createEngineCore, type EngineCore } from './engine-core.ts'
import { createForwardingLogger } from './forwarding-logger.ts'
import type { Publication } from './publication.ts'
import { type FromWorker, sentError, type ToWorker, type WorkerStart } from './worker-messages.ts'

/** Called by a worker's main module. Answers over the port until it is closed, or its other end is gone. */
export async function runEngineWorker(): Promise<void> {
  const port = parentPort
  const start = workerData as WorkerStart
  if (!port || start?.engine !== true) throw new TypeError('this is no worker of the registry')
  const post = (message: FromWorker, transfer: ArrayBuffer[] = []) => port.postMessage(message, transfer)
  try {
    const log = createForwardingLogger({ level: start.logLevel, send: (line) => post({ kind: 'log', ...line }) })
    await using outbound = createOutbound()
    const store = await openStore(start, log)
    const core = await startCore(store, {
      config: start.config,
      store,
      handlers: createHandlers({ outbound }),
      clock: systemClock,
      log,
      publish: (publication) => post({ kind: 'publication', publication }, transferList(publication)),
    })
    post({ kind: 'ready' })
    const closing = new AbortController()
    // Its heap is not that of the main thread, and most of the garbage of a load is here.
    releaseMemoryWhenIdle({
      signal: closing.signal,
      onCollected: () => post({ kind: 'released', result: 'done' }),
      onError: () => post({ kind: 'released', result: 'failed' }),
    })
    await answer(port, core, post)
    closing.abort()
    await core[Symbol.asyncDispose]()
  } catch (e) {
    post({ kind: 'broken', error: sentError(e) })
  }
  port.close()
}

async function openStore({ config }: WorkerStart, log: Logger): Promise<RegistryStore> {
  const { storage } = config
  if (storage.kind === 'postgres') return openPostgresStore(storage, { log })
  return openSqliteStore({ clock: systemClock, ...(storage.path !== undefined && { path: storage.path }) })
}

async function startCore(store: RegistryStore, options: Parameters<typeof createEngineCore>[0]): Promise<EngineCore> {
  try {
    return await createEngineCore(options)
  } catch (e) {
    await store[Symbol.asyncDispose]()
    throw e
  }
}

/** Resolves when it is time to close. */
function answer(port: MessagePort, core: EngineCore, post: (message: FromWorker) => void): Promise<void> {
  const { promise, resolve } = Promise.withResolvers<void>()
  port.on('message', (message: ToWorker) => {
    if (message.kind === 'close') resolve()
    else if (message.kind === 'call') void call(message)
    else core[message.kind](message.target)
  })
  port.on('close', () => resolve())

  async function call({ id, method, args }: Extract<ToWorker, { kind: 'call' }>): Promise<void> {
    try {
      // The other side calls by the same interface.
      const target = (method === 'reload' || method === 'resign' ? core[method] : core.admin[method]) as (
        ...args: readonly unknown[]
      ) => Promise<unknown>
      post({ kind: 'result', id, value: await target(...args) })
    } catch (e) {
      post({ kind: 'failure', id, error: sentError(e) })
    }
  }

  return promise
}

function transferList(publication: Publication): ArrayBuffer[] {
  if (publication.kind === 'view') return snapshotTransferList(publication.snapshot)
  return publication.kind === 'search' && publication.index ? searchIndexTransferList(publication.index) : []
}
