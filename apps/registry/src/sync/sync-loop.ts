import type { FetchLimits } from '@thv/catalog/sources/fetch/registry-handler'
import type { SourceConfig } from '@thv/catalog/sources/fetch/source-config'
import { createBackoff } from '@thv/kernel/backoff'
import { errorMessage } from '@thv/kernel/errors'
import type { LeasedSource } from '../store/registry-store.ts'
import { createPlaces } from './places.ts'
import { type AttemptEnd, syncSource } from './sync-attempt.ts'
import type { SyncOptions } from './sync-options.ts'
import { createWaker, endsWithin } from './waker.ts'

export interface SyncLoop extends AsyncDisposable {
  /** Something may be due earlier than was known. */
  poke(): void
  readonly counts: SyncCounts
}

export interface SyncCounts {
  readonly succeeded: number
  readonly unchanged: number
  readonly failed: number
}

export interface SyncLoopOptions extends Omit<SyncOptions, 'config' | 'limits' | 'place'> {
  /** Asked for before each attempt. */
  readonly config: () => SyncOptions['config']
  readonly limits: () => FetchLimits
  /** Sources that another replica may sync. */
  readonly withheld?: () => readonly string[]
  /** An attempt has ended and is counted. `broken`: by a fault of the program. */
  readonly onEnd?: (source: SourceConfig, end: AttemptEnd | 'broken') => void
}

/** For missed notifications: another process that makes a source due is otherwise noticed at once. */
const MAX_WAIT_MS = 10_000
const MIN_WAIT_MS = 10
const CLOSE_MS = 5_000

/** Syncs whatever is due, several sources at a time, until it is closed. */
export function startSyncLoop(options: SyncLoopOptions): SyncLoop {
  const { store, clock, log, owner, random } = options
  const stopped = new AbortController()
  const waker = createWaker(clock)
  const places = createPlaces({ clock, bound: () => options.config().parallel, onFree: waker.wake })
  const running = new Set<Promise<void>>()
  const counts = { succeeded: 0, unchanged: 0, failed: 0 }
  const unsubscribe = store.onChange(waker.wake)
  const loop = run()

  async function run(): Promise<void> {
    const backoff = createBackoff({ baseMs: 200, maxMs: MAX_WAIT_MS, random })
    while (!stopped.signal.aborted) {
      let waitMs = MAX_WAIT_MS
      try {
        waitMs = await startDue()
        backoff.reset()
      } catch (e) {
        waitMs = backoff.next()
        log.debug('what is due could not be read', { error: errorMessage(e) })
      }
      await waker.wait(Math.max(waitMs, MIN_WAIT_MS), stopped.signal)
    }
  }

  /** Gives how long there is nothing to do, unless something happens. */
  async function startDue(): Promise<number> {
    const { free } = places
    // A place that becomes free wakes the loop.
    if (free === 0) return MAX_WAIT_MS
    const except = options.withheld?.() ?? []
    const claimed = await store.claimDue({ owner, leaseMs: options.config().leaseMs, limit: free, except })
    for (const leased of claimed) start(leased)
    return claimed.length === free ? MIN_WAIT_MS : Math.min((await store.nextDueInMs(except)) ?? MAX_WAIT_MS, MAX_WAIT_MS)
  }

  function start(leased: LeasedSource): void {
    const place = places.open()
    let ended: AttemptEnd | 'broken' = 'broken'
    const attempt = syncSource(leased, { ...options, config: options.config(), limits: options.limits(), place }, stopped.signal)
      .then((end) => {
        ended = end
        if (end === 'succeeded' || end === 'unchanged' || end === 'failed') counts[end]++
      })
      .catch((e) => log.error('a sync broke down', { source: leased.config.name, error: e }))
      .finally(() => {
        running.delete(attempt)
        place.end()
        options.onEnd?.(leased.config, ended)
      })
    running.add(attempt)
  }

  return {
    poke: waker.wake,
    counts,
    async [Symbol.asyncDispose]() {
      unsubscribe()
      stopped.abort()
      await endsWithin(clock, CLOSE_MS, Promise.all([loop, ...running]))
    },
  }
}
