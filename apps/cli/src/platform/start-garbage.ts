import { performance } from 'node:perf_hooks'
import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'
import { type Clock, systemClock } from '@thv/kernel/clock'

export interface GarbageOptions {
  /** Seconds on end in which the process had little to do. */
  readonly quietSeconds: number
  readonly signal: AbortSignal | undefined
  readonly clock?: Clock
  /** Share of the time since the last call in which the event loop was busy, 0 to 1. */
  readonly load?: () => number
  readonly collect?: () => Promise<unknown>
}

const LOOK_MS = 1_000
const QUIET_LOAD = 0.3
/** A process that has so much to do needs its memory. */
const MAX_LOOKS = 120

/**
 * Once, when the start is over: gives back what it took. V8 grows its nursery for the garbage of a start and would keep that, 50 MB of 200,
 * until a collection of its own in a quiet moment, half a minute later or never. Whatever comes afterwards lets it grow again, so that no
 * request is slower for it. Resolves when it is done, there was no quiet, or the signal fires.
 */
export async function collectStartGarbage(options: GarbageOptions): Promise<void> {
  const { quietSeconds, signal, clock = systemClock, load = eventLoopLoad(), collect = collectAll } = options
  try {
    let quiet = 0
    for (let look = 0; look < MAX_LOOKS && quiet < quietSeconds; look++) {
      await clock.sleep(LOOK_MS, signal)
      quiet = load() < QUIET_LOAD ? quiet + 1 : 0
    }
    if (quiet >= quietSeconds) await collect()
  } catch (error) {
    if (!signal?.aborted) throw error // told to stop: nothing is worth collecting any more
  }
}

function eventLoopLoad(): () => number {
  let last = performance.eventLoopUtilization()
  return () => {
    const now = performance.eventLoopUtilization()
    const { utilization } = performance.eventLoopUtilization(now, last)
    last = now
    return utilization
  }
}

/** Node has no call for it, but V8 gives one to every context that is made while the flag is set. */
async function collectAll(): Promise<void> {
  setFlagsFromString('--expose-gc')
  const gc: unknown = runInNewContext('globalThis.gc')
  setFlagsFromString('--no-expose-gc')
  // The flavour that gives memory back to the system, as a task of its own.
  if (typeof gc === 'function') await gc({ type: 'major', execution: 'async', flavor: 'last-resort' })
}
