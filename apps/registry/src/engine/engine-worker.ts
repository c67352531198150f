import { createBackoff } from '@thv/kernel/backoff'
import { type Clock, systemClock } from '@thv/kernel/clock'
import { errorMessage, ThvError } from '@thv/kernel/errors'
import type { Logger } from '@thv/telemetry/log'
import type { ReleaseResult } from '@thv/telemetry/process-metrics'
import type { RegistryConfig } from '../config/registry-config.ts'
import { createWaker, endsWithin } from '../sync/waker.ts'
import { allEntries } from './all-entries.ts'
import type { EngineAdmin, EngineStatus, RegistryEngine } from './engine.ts'
import type { EntryPage } from './entry-page.ts'
import { createPublicationGate } from './publication-gate.ts'
import { createServedRegistries } from './served-registries.ts'
import { startWorker, type WorkerLink } from './worker-link.ts'
import type { CallMethod } from './worker-messages.ts'

export interface EngineWorkerOptions {
  readonly config: RegistryConfig
  /** Module that calls `runEngineWorker` when it finds itself in a worker. */
  readonly entry: URL
  readonly log: Logger
  readonly clock?: Clock
  /** The thread has given memory back. */
  readonly onReleased?: ((result: ReleaseResult) => void) | undefined
}

export interface EngineWorker extends RegistryEngine {
  /** Ends the worker as a crash would: for tests. */
  crash(): Promise<void>
}

const START_MS = 120_000
const CLOSE_MS = 20_000

/** Starts the engine in a thread of its own. Rejects if it cannot start the first time; later it is started again for as long as it takes. */
export async function startEngineWorker(options: EngineWorkerOptions): Promise<EngineWorker> {
  const { entry, log, clock = systemClock, onReleased = () => undefined } = options
  let config = options.config
  let link: WorkerLink
  let down: string | undefined
  const closing = new AbortController()
  const served = createServedRegistries({
    clock,
    want: (target) => link.send('want', target),
    unwant: (target) => link.send('unwant', target),
  })
  const gate = createPublicationGate({ clock, pass: served.accept })

  async function start(): Promise<void> {
    link = startWorker({ config, entry, log, clock, onPublication: gate.accept, onReleased })
    if (!(await endsWithin(clock, START_MS, link.ready))) {
      await link.terminate()
      throw new ThvError('timeout', 'the engine of the registry did not start in time')
    }
  }

  async function supervise(): Promise<void> {
    const backoff = createBackoff({ baseMs: 200, maxMs: 30_000 })
    const { wait } = createWaker(clock)
    for (;;) {
      const startedAt = clock.monotonic()
      const why = await link.ended
      if (closing.signal.aborted) return
      if (clock.monotonic() - startedAt > 60_000) backoff.reset()
      down = `the engine is being started again: ${why}`
      log.error('the engine has stopped; what is served stays, and it is started again', { error: why })
      for (;;) {
        await wait(backoff.next(), closing.signal)
        if (closing.signal.aborted) return
        try {
          // Data in memory only has to be fetched again: until then the old data are better than none.
          if (config.storage.kind === 'sqlite' && config.storage.path === undefined) gate.hold()
          await start()
          break
        } catch (e) {
          down = errorMessage(e)
          log.error('the engine cannot be started', { error: down })
        }
      }
      for (const target of served.wanted) link.send('want', target)
      down = undefined
      log.info('the engine runs again')
    }
  }

  await start()
  const supervisor = supervise()
  const call = (method: CallMethod, ...args: readonly unknown[]) => link.call(method, args)

  return {
    registry: served.registry,
    aggregated: served.aggregated,
    get status(): EngineStatus {
      return down === undefined ? served.status : { ...served.status, storeError: down }
    },
    admin: remoteAdmin(call),
    async reload(next) {
      await call('reload', next)
      config = next
    },
    async resign() {
      await call('resign')
    },
    crash: () => link.terminate(),
    async [Symbol.asyncDispose]() {
      closing.abort()
      await endsWithin(clock, CLOSE_MS, Promise.all([link.close(), supervisor]))
      gate.close()
    },
  }
}

function remoteAdmin(call: (method: CallMethod, ...args: readonly unknown[]) => Promise<unknown>): EngineAdmin {
  type Call<M extends keyof EngineAdmin> = ReturnType<EngineAdmin[M]>
  return {
    sources: () => call('sources') as Call<'sources'>,
    registries: () => call('registries') as Call<'registries'>,
    putSource: (source) => call('putSource', source) as Call<'putSource'>,
    deleteSource: (name) => call('deleteSource', name) as Call<'deleteSource'>,
    putRegistry: (registry) => call('putRegistry', registry) as Call<'putRegistry'>,
    deleteRegistry: (name) => call('deleteRegistry', name) as Call<'deleteRegistry'>,
    requestSync: (source) => call('requestSync', source) as Call<'requestSync'>,
    entriesOf: (source) => allEntries((after) => call('entryPage', source, after) as Promise<EntryPage>),
    listedImages: () => call('listedImages') as Call<'listedImages'>,
    publish: (entry) => call('publish', entry) as Call<'publish'>,
    replaceDocument: (entry) => call('replaceDocument', entry) as Call<'replaceDocument'>,
    setStatus: (change) => call('setStatus', change) as Call<'setStatus'>,
    versionsOf: (source, name) => call('versionsOf', source, name) as Call<'versionsOf'>,
    claimsOf: (source, name) => call('claimsOf', source, name) as Call<'claimsOf'>,
    setClaims: (change) => call('setClaims', change) as Call<'setClaims'>,
  }
}
