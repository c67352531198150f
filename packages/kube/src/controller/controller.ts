import { type Clock, systemClock } from '@thv/kernel/clock'
import { isThvError, ThvError } from '@thv/kernel/errors'
import { linkSignals } from '@thv/kernel/lifecycle'
import { formatKey, parseKey } from '../objects/object-key.ts'
import type { ObjectKey } from '../objects/types.ts'
import type { Outcome } from './outcome.ts'
import type { Source } from './sources.ts'
import { WorkQueue, type WorkQueueOptions } from './work-queue.ts'

export { done, type Outcome, requeueAfter, retry } from './outcome.ts'
export { type Source, watchMapped, watchOwned, watchSelf } from './sources.ts'

/**
 * Brings one object nearer to what it should be. Level-based: it receives the key of the object, never what happened to it, reads everything
 * it needs from caches, and may be called at any time. It is never called twice at a time for one key.
 */
export type Reconcile = (key: ObjectKey, context: ReconcileContext) => Promise<Outcome>

export interface ReconcileContext {
  /** Aborts when the time limit is over or the controller gives up waiting at its stop. Pass it to every call. */
  readonly signal: AbortSignal
  /** 1 for the first try, then one more after each failure in a row. */
  readonly attempt: number
}

export interface ReconcileReport {
  readonly key: ObjectKey
  readonly durationMs: number
  readonly attempt: number
  readonly result: Outcome['kind'] | 'error' | 'timeout'
  /** Of a `retry`. */
  readonly reason?: string
}

export interface ControllerOptions {
  name: string
  reconcile: Reconcile
  sources: readonly Source[]
  queue?: Omit<WorkQueueOptions, 'clock'> | undefined
  /** Objects worked on at the same time. Default 1. */
  concurrency?: number | undefined
  /** Limit of one reconcile. Default 2 min. */
  reconcileTimeoutMs?: number | undefined
  /** How long the caches may take to fill before `run` gives up. Default 2 min. */
  syncTimeoutMs?: number | undefined
  /** How long `run` waits at its stop for reconciles under way before it aborts them. Default 10 s; none when the lease is lost. */
  drainMs?: number | undefined
  clock?: Clock | undefined
  /** Told what reconciles and hooks throw. `key` is absent when no object is concerned. */
  onError?: ((error: unknown, key?: ObjectKey) => void) | undefined
  /** For metrics. */
  onReconcile?: ((report: ReconcileReport) => void) | undefined
}

export interface ControllerStats {
  readonly reconciles: number
  /** Reconciles that threw. */
  readonly failures: number
  readonly timeouts: number
  /** Reconciles that went on after their signal was aborted, and still do. Their keys are not worked on meanwhile. */
  readonly stuck: number
  readonly depth: number
  readonly delayed: number
  readonly active: number
}

export interface Controller {
  readonly name: string
  readonly stats: ControllerStats
  /** For wishes that come from outside the cluster. */
  enqueue(key: ObjectKey): void
  /** Waits for the caches, works until the signal aborts, lets running reconciles end. Throws `timeout` when a cache does not come up. */
  run(signal: AbortSignal): Promise<void>
}

/** How long a reconcile may take to notice that its signal was aborted before its worker leaves it behind. */
const ABORT_GRACE_MS = 5_000

export function createController(options: ControllerOptions): Controller {
  const { name, reconcile, sources, concurrency = 1, reconcileTimeoutMs = 120_000, drainMs = 10_000, clock = systemClock } = options
  const queue = new WorkQueue({ ...options.queue, clock })
  const counts = { reconciles: 0, failures: 0, timeouts: 0, stuck: 0 }
  /** One per reconcile under way. */
  const active = new Set<AbortController>()
  let started = false

  function report(error: unknown, key?: ObjectKey): void {
    try {
      options.onError?.(error, key)
    } catch {
      counts.failures++ // the error handler itself failed
    }
  }

  async function run(signal: AbortSignal): Promise<void> {
    if (started) throw new TypeError(`controller ${name} was started twice`)
    started = true
    const unsubscribes = sources.map((source) => source.subscribe(enqueue))
    try {
      if (!(await cachesSynced(signal))) return
      for (let worker = 0; worker < concurrency; worker++) void work() // ends with the queue
      await aborted(signal)
      // Another process may hold the lease already: what is under way must write no more.
      await stop(isThvError(signal.reason, 'lease_lost') ? 0 : drainMs)
    } finally {
      for (const unsubscribe of unsubscribes) unsubscribe()
      void queue.shutdown({ drain: false })
    }
  }

  /** False when the signal aborts first. */
  async function cachesSynced(signal: AbortSignal): Promise<boolean> {
    const limit = options.syncTimeoutMs ?? 120_000
    const overdue = new AbortController()
    const timer = clock.setTimer(limit, () => overdue.abort())
    try {
      const either = linkSignals(signal, overdue.signal)
      await Promise.all(sources.map((source) => source.waitForSync(either)))
      return true
    } catch (error) {
      if (signal.aborted) return false
      if (!overdue.signal.aborted) throw error
      const missing = sources.filter((source) => !source.hasSynced).map((source) => source.name)
      throw new ThvError('timeout', `controller ${name}: after ${limit} ms these caches had no complete list: ${missing.join(', ')}`)
    } finally {
      timer.cancel()
    }
  }

  async function work(): Promise<void> {
    for (let text = await queue.take(); text !== undefined; text = await queue.take()) await serve(text)
  }

  /** Returns when the key's turn is over, or when its reconcile ignores the signal to end: it then keeps only its key. */
  async function serve(text: string): Promise<void> {
    const limit = new AbortController()
    active.add(limit)
    const finished = reconcileOne(text, limit.signal).finally(() => {
      active.delete(limit)
      queue.done(text)
    })
    const leave = Promise.withResolvers<'left'>()
    const overdue = () => new ThvError('timeout', `controller ${name}: ${text} took longer than ${reconcileTimeoutMs} ms`)
    const timers = [
      clock.setTimer(reconcileTimeoutMs, () => limit.abort(overdue())),
      clock.setTimer(reconcileTimeoutMs + ABORT_GRACE_MS, () => leave.resolve('left')),
    ]
    const end = await Promise.race([finished, leave.promise])
    for (const timer of timers) timer.cancel()
    if (end !== 'left') return
    counts.stuck++
    void finished.then(() => counts.stuck--)
  }

  /** Never throws. */
  async function reconcileOne(text: string, signal: AbortSignal): Promise<void> {
    const key = parseKey(text)
    const attempt = queue.failures(text) + 1
    const startedAt = clock.monotonic()
    let result: Pick<ReconcileReport, 'result' | 'reason'>
    try {
      const outcome = await reconcile(key, { signal, attempt })
      settle(text, outcome)
      result = outcome.kind === 'retry' ? { result: 'retry', reason: outcome.reason } : { result: outcome.kind }
    } catch (error) {
      const overdue = isThvError(signal.reason, 'timeout')
      result = { result: overdue ? 'timeout' : 'error' }
      counts[overdue ? 'timeouts' : 'failures']++
      queue.addRateLimited(text)
      report(error, key)
    }
    counts.reconciles++
    try {
      options.onReconcile?.({ key, attempt, ...result, durationMs: clock.monotonic() - startedAt })
    } catch (error) {
      report(error, key)
    }
  }

  function settle(text: string, outcome: Outcome): void {
    if (outcome.kind === 'retry') {
      queue.addRateLimited(text)
      return
    }
    queue.forget(text)
    if (outcome.kind === 'requeueAfter') queue.addAfter(text, outcome.ms)
  }

  async function stop(patienceMs: number): Promise<void> {
    const idle = queue.shutdown({ drain: false })
    const abortAll = () => {
      for (const controller of active) controller.abort(new ThvError('aborted', `controller ${name} is stopping`))
    }
    if (patienceMs === 0) abortAll()
    const limit = clock.setTimer(patienceMs, abortAll)
    const last = Promise.withResolvers<void>()
    const lastLimit = clock.setTimer(patienceMs + ABORT_GRACE_MS, last.resolve)
    await Promise.race([idle, last.promise])
    limit.cancel()
    lastLimit.cancel()
    if (queue.processing > 0) {
      report(new ThvError('shutdown_timeout', `controller ${name} left ${queue.processing} reconciles behind that did not end`))
    }
  }

  function enqueue(key: ObjectKey): void {
    queue.add(formatKey(key))
  }

  return {
    name,
    get stats() {
      return { ...counts, depth: queue.depth, delayed: queue.delayed, active: queue.processing }
    },
    enqueue,
    run,
  }
}

function aborted(signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    if (signal.aborted) resolve()
    else signal.addEventListener('abort', () => resolve(), { once: true })
  })
}
