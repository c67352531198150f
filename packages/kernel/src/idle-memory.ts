import { performance } from 'node:perf_hooks'
import { getHeapSpaceStatistics, type HeapSpaceInfo, setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'
import { type Clock, systemClock, type Timer } from './clock.ts'

export interface IdleMemoryOptions {
  readonly signal: AbortSignal
  readonly clock?: Clock
  /** Milliseconds in which the event loop was busy since the last call. */
  readonly busyMs?: () => number
  readonly collect?: (collection: Collection) => Promise<unknown>
  readonly heap?: () => HeapSize
  /** After each collection. */
  readonly onCollected?: () => void
  readonly onError?: (error: unknown) => void
}

/**
 * - `thorough` returns all empty pages at once, and takes about two milliseconds per megabyte in use
 * - `brief` takes a third of that per megabyte that lives, and keeps empty pages in a pool of V8
 * - `nursery` takes a millisecond, and returns what has been in the pool for a while
 */
export type Collection = 'thorough' | 'brief' | 'nursery'

/** In bytes. */
export interface HeapSize {
  /** All pages. */
  readonly size: number
  /** On the pages of what has lived for a while, garbage among it. The nursery is left out: it is mostly garbage, which takes no time to collect. */
  readonly used: number
}

const LOOK_MS = 1_000
/** A second with less work than this is quiet. */
const QUIET_MS = 50
const QUIET_LOOKS = 2
const MOST_QUIET_LOOKS = 60
const PAUSE_MS = 10_000
/** Work that comes back sooner after a collection than this would have been faster without it. */
const SOON_MS = 60_000
/** A larger heap gets a brief collection: a thorough one would stall the event loop for more than 40 milliseconds. */
const LARGEST_THOROUGH_HEAP = 20 * 1024 * 1024
/** Of what lives. A larger heap is left to V8, which collects it in steps. */
const LARGEST_HEAP = 64 * 1024 * 1024
/** After this time V8 returns the pages of its pool with the next collection of any kind. */
const POOL_MS = 13_000
/** A smaller heap, such as that of a proxy, has about ten megabytes to give back: less than its compiled code is worth while calls come. */
const SMALL_HEAP = 32 * 1024 * 1024

/**
 * Gives memory back to the system after each burst of work, the start of the process included. V8 grows its nursery for the garbage of
 * a burst and malloc keeps its pages; both would stay, tens of megabytes, until a collection in a quiet moment that may never come.
 *
 * Collects once when the event loop was nearly idle for two seconds: never during a burst, never twice without work in between, and at
 * most once in ten seconds. A large heap is left alone. Keeps no process alive and ends with the signal.
 *
 * After a brief collection that of the nursery belongs to it, if the process is quiet when it is due; otherwise V8 collects by itself.
 *
 * A collection also drops the compiled code of what is called most, so that the next thousands of calls cost more than twice the CPU.
 * When work comes back within a minute, the next collection therefore waits for twice as many quiet seconds, up to a minute; after a
 * quiet minute two are enough again. A small heap waits for a quiet minute every time but the first, which comes after the start.
 */
export function releaseMemoryWhenIdle(options: IdleMemoryOptions): void {
  const { signal, clock = systemClock, busyMs = eventLoopBusyMs(), collect = runCollection, heap = heapSize } = options
  let hasWorked = true // the start is work
  let quietLooks = 0
  let neededLooks = QUIET_LOOKS
  let isCollecting = false
  let lastCollection = Number.NEGATIVE_INFINITY
  let isPoolFull = false
  /** Known only after a collection. */
  let living = 0
  let timer: Timer | undefined

  const look = (): void => {
    timer = clock.setTimer(LOOK_MS, look)
    const isQuiet = busyMs() < QUIET_MS
    if (isCollecting) return
    quietLooks = isQuiet ? quietLooks + 1 : 0
    if (!isQuiet && !hasWorked) neededLooks = looksAfter(clock.monotonic() - lastCollection, neededLooks)
    if (!isQuiet) hasWorked = true
    const sinceMs = clock.monotonic() - lastCollection
    if (hasWorked && quietLooks >= neededLooks && sinceMs >= PAUSE_MS && isWorthIt()) void release()
    else if (isPoolFull && sinceMs >= POOL_MS) void emptyPool(isQuiet)
  }

  const isWorthIt = (): boolean => {
    const { size, used } = heap()
    const isFirst = lastCollection === Number.NEGATIVE_INFINITY
    const isLarge = used > LARGEST_HEAP && (living > LARGEST_HEAP || used > 2 * LARGEST_HEAP)
    return !isLarge && (isFirst || size >= SMALL_HEAP || quietLooks >= MOST_QUIET_LOOKS)
  }

  const release = async (): Promise<void> => {
    const collection = heap().used > LARGEST_THOROUGH_HEAP ? 'brief' : 'thorough'
    const isDone = await isCollected(collection, options.onCollected)
    hasWorked = false
    lastCollection = clock.monotonic()
    if (!isDone) return
    isPoolFull = collection === 'brief'
    living = heap().used
  }

  const emptyPool = async (isQuiet: boolean): Promise<void> => {
    isPoolFull = false
    if (isQuiet) await isCollected('nursery')
  }

  const isCollected = async (collection: Collection, onCollected?: () => void): Promise<boolean> => {
    isCollecting = true
    try {
      await collect(collection)
      onCollected?.()
      return true
    } catch (error) {
      options.onError?.(error)
      return false
    } finally {
      busyMs() // the collection itself is no work
      isCollecting = false
    }
  }

  if (signal.aborted) return
  timer = clock.setTimer(LOOK_MS, look)
  signal.addEventListener('abort', () => timer?.cancel(), { once: true })
}

function looksAfter(quietMs: number, looks: number): number {
  return quietMs < SOON_MS ? Math.min(2 * looks, MOST_QUIET_LOOKS) : QUIET_LOOKS
}

export function heapSize(spaces: readonly HeapSpaceInfo[] = getHeapSpaceStatistics()): HeapSize {
  const old = spaces.filter(({ space_name: name }) => !name.startsWith('new_'))
  return {
    size: spaces.reduce((sum, { physical_space_size }) => sum + physical_space_size, 0),
    used: old.reduce((sum, { space_used_size }) => sum + space_used_size, 0),
  }
}

function eventLoopBusyMs(): () => number {
  let last = performance.eventLoopUtilization()
  return () => {
    const now = performance.eventLoopUtilization()
    const { active } = performance.eventLoopUtilization(now, last)
    last = now
    return active
  }
}

/** Each runs as a task of its own. */
const COLLECTIONS = {
  thorough: { type: 'major', execution: 'async', flavor: 'last-resort' },
  brief: { type: 'major', execution: 'async', flavor: 'regular' },
  nursery: { type: 'minor', execution: 'async' },
} as const satisfies Record<Collection, object>

async function runCollection(collection: Collection): Promise<void> {
  await findCollector()(COLLECTIONS[collection])
}

type Collector = (options: (typeof COLLECTIONS)[Collection]) => Promise<unknown>

const FIND_ATTEMPTS = 20

/**
 * Node has no call for it, but V8 gives one to every context that is made while the flag is set. The flag is that of the process: another thread
 * that collects at this moment, such as the engine of a registry, may take it back in between.
 */
export function findCollector(inNewContext: (code: string) => unknown = runInNewContext): Collector {
  for (let attempt = 0; attempt < FIND_ATTEMPTS; attempt++) {
    setFlagsFromString('--expose-gc')
    const gc = inNewContext('globalThis.gc')
    setFlagsFromString('--no-expose-gc')
    if (typeof gc === 'function') return gc as Collector
  }
  throw new Error('V8 offers no collection')
}
