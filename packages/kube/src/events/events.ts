import { type BackoffOptions, createBackoff } from '@thv/kernel/backoff'
import { type Clock, systemClock, type Timer } from '@thv/kernel/clock'
import { linkSignals } from '@thv/kernel/lifecycle'
import type { KubeClient } from '../client/client.ts'
import { isAlreadyExists, isNotFound, isTooManyRequests, KubeApiError } from '../client/kube-api-error.ts'
import { createTokenBucket, type TokenBucketOptions } from '../controller/token-bucket.ts'
import type { KubeEvent } from '../objects/builtin-kinds.ts'
import { microTime } from '../objects/micro-time.ts'
import { events } from '../objects/resource-types.ts'
import type { KubeObject, ResourceType } from '../objects/types.ts'
import { type EventInput, eventKey, eventName, eventObject } from './event-object.ts'

export type { EventInput } from './event-object.ts'

export interface EventRecorderOptions {
  readonly client: Pick<KubeClient, 'create' | 'patch'>
  /** `reportingController`: a qualified name, such as `toolhive.stacklok.dev/operator`. */
  readonly controller: string
  /** `reportingInstance`: which process of it, such as the pod's name. */
  readonly instance: string
  readonly clock?: Clock
  /** Ends the sending. What is recorded afterwards waits for `flush`. */
  readonly signal?: AbortSignal
  /** Told of an event that was given up; without it when it could not even be written down. */
  readonly onError?: (error: unknown, event?: KubeEvent) => void
  /** Events that wait to be sent; one more is dropped. Default 1,000. */
  readonly maxPending?: number
  /** Events remembered for their repeats. Default 4,096. */
  readonly maxSeries?: number
  /** A repeat that comes later than this after the last one is a new Event. Default 10 min. */
  readonly windowMs?: number
  /** A series is written at most once in about this time. Default 30 s. */
  readonly seriesIntervalMs?: number
  /** Default 20 a second, 100 at once. */
  readonly rate?: TokenBucketOptions
  readonly backoff?: BackoffOptions
  /** Times one event is tried before it is given up. Default 8. */
  readonly maxAttempts?: number
  readonly random?: () => number
}

export interface EventRecorder {
  /** Never throws and never waits. */
  record(type: ResourceType, object: KubeObject, event: EventInput): void
  /** Sends now what waits, also the counts of repeats. Resolves when all is sent or given up, or the signal aborts. */
  flush(signal: AbortSignal): Promise<void>
  readonly stats: Readonly<EventRecorderStats>
}

export interface EventRecorderStats {
  recorded: number
  /** Repeats that made no Event of their own. */
  aggregated: number
  created: number
  patched: number
  /** No room. */
  dropped: number
  /** The namespace was being deleted, or gone. */
  terminating: number
  /** Refused, or tried too often. */
  failed: number
  readonly pending: number
}

/** One Event on the server, or soon there, and how often it has happened. */
interface Series {
  readonly key: string
  event: KubeEvent
  count: number
  lastSeen: number
  lastTimeMs: number
  onServer: boolean
  sentCount: number
  timer: Timer | undefined
}

/**
 * Tells people what was done to an object. The first of a kind is sent at once; repeats within ten minutes only raise the count of the
 * same Event. Events are an aid, not a record: under pressure they are dropped and counted, and no caller waits for them.
 */
export function createEventRecorder(options: EventRecorderOptions): EventRecorder {
  const { client, controller, instance, clock = systemClock, onError, random = Math.random } = options
  const { maxPending = 1_000, maxSeries = 4_096, windowMs = 600_000, seriesIntervalMs = 30_000, maxAttempts = 8 } = options
  const bucket = createTokenBucket(options.rate ?? { perSecond: 20, burst: 100 }, clock)
  const reporter = { controller, instance }
  /** In the order of their last occurrence. */
  const known = new Map<string, Series>()
  const pending = new Set<Series>()
  const counts = { recorded: 0, aggregated: 0, created: 0, patched: 0, dropped: 0, terminating: 0, failed: 0 }
  let sending: { stop: AbortController; done: Promise<void> } | undefined
  let flushing = 0

  function take(type: ResourceType, object: KubeObject, input: EventInput): void {
    forgetOld()
    const key = eventKey(object, input)
    const old = known.get(key)
    if (old !== undefined) {
      repeat(old)
      return
    }
    if (pending.size >= maxPending) {
      counts.dropped++
      return
    }
    const timeMs = clock.now()
    const event = eventObject({ type, object }, input, { reporter, name: eventName(object, timeMs), timeMs })
    const lastSeen = clock.monotonic()
    const series: Series = { key, event, count: 1, lastSeen, lastTimeMs: timeMs, onServer: false, sentCount: 0, timer: undefined }
    known.set(key, series)
    enqueue(series)
  }

  function repeat(series: Series): void {
    counts.aggregated++
    series.count++
    series.lastSeen = clock.monotonic()
    series.lastTimeMs = clock.now()
    known.delete(series.key)
    known.set(series.key, series)
    if (!pending.has(series)) sendLater(series) // else the sender sees the new count
  }

  function sendLater(series: Series): void {
    series.timer ??= clock.setTimer(seriesIntervalMs * (0.75 + 0.5 * random()), () => {
      series.timer = undefined
      enqueue(series)
    })
  }

  function enqueue(series: Series): void {
    if (pending.size >= maxPending) {
      counts.dropped++ // the next repeat tries again
      return
    }
    pending.add(series)
    start()
  }

  function forgetOld(): void {
    const oldest = clock.monotonic() - windowMs
    for (const series of known.values()) {
      if (series.lastSeen > oldest && known.size < maxSeries) return
      known.delete(series.key)
      if (series.timer === undefined) continue
      series.timer.cancel()
      series.timer = undefined
      enqueue(series) // its last count must not be lost
    }
  }

  /** One sender at a time; it ends when nothing is left. */
  function start(): void {
    if (sending !== undefined || flushing > 0 || options.signal?.aborted) return
    const stop = new AbortController()
    const done = send(linkSignals(stop.signal, options.signal), false).finally(() => {
      sending = undefined
      if (pending.size > 0) start()
    })
    sending = { stop, done }
  }

  async function send(signal: AbortSignal, hurry: boolean): Promise<void> {
    try {
      for (const series of pending) {
        if (!hurry) await clock.sleep(bucket.reserve(), signal)
        signal.throwIfAborted()
        await deliver(series, signal)
        pending.delete(series)
        if (series.count === series.sentCount) continue
        if (hurry) pending.add(series)
        else sendLater(series)
      }
    } catch (error) {
      if (!signal.aborted) throw error
    }
  }

  async function deliver(series: Series, signal: AbortSignal): Promise<void> {
    const backoff = createBackoff({ baseMs: 500, maxMs: 30_000, ...options.backoff })
    for (let tries = 1; ; tries++) {
      try {
        return await write(series, signal)
      } catch (error) {
        if (signal.aborted) throw error
        if (isNamespaceGone(error)) {
          counts.terminating++
          return forget(series)
        }
        if (series.onServer && isNotFound(error)) {
          // Somebody deleted it, or it has expired. The count goes on under a new name.
          series.event = { ...series.event, metadata: { ...series.event.metadata, name: eventName(named(series.event), clock.now()) } }
          series.onServer = false
        } else if (!mayPass(error) || tries >= maxAttempts) {
          report(error, series.event)
          return forget(series)
        }
        await clock.sleep(backoff.next(), signal)
      }
    }
  }

  /** May be repeated: the name of an Event is its own, and counts are absolute. */
  async function write(series: Series, signal: AbortSignal): Promise<void> {
    const { count, event } = series
    const repeats = { count, lastObservedTime: microTime(series.lastTimeMs) }
    const { name, namespace = 'default' } = event.metadata
    if (series.onServer) {
      await client.patch(events, { namespace, name }, { kind: 'merge', body: { series: repeats } }, { signal })
      counts.patched++
    } else {
      await client.create(events, count > 1 ? { ...event, series: repeats } : event, { signal }).catch((error: unknown) => {
        if (!isAlreadyExists(error)) throw error // else: our own, whose answer was lost
      })
      counts.created++
      series.onServer = true
    }
    series.sentCount = count
  }

  function forget(series: Series): void {
    series.timer?.cancel()
    series.timer = undefined
    series.sentCount = series.count
    if (known.get(series.key) === series) known.delete(series.key)
  }

  function report(error: unknown, event?: KubeEvent): void {
    counts.failed++
    try {
      onError?.(error, event)
    } catch {
      counts.failed++ // a listener that throws must not end the sending
    }
  }

  return {
    record(type, object, input) {
      counts.recorded++
      try {
        take(type, object, input)
      } catch (error) {
        report(error) // an object without a name, say
      }
    },
    async flush(signal) {
      flushing++
      try {
        sending?.stop.abort()
        await sending?.done
        for (const series of known.values()) {
          if (series.timer === undefined) continue
          series.timer.cancel()
          series.timer = undefined
          pending.add(series)
        }
        await send(signal, true)
      } finally {
        flushing--
        if (pending.size > 0) start()
      }
    },
    get stats() {
      return { ...counts, pending: pending.size }
    },
  }
}

function named(event: KubeEvent): KubeObject {
  return { metadata: { name: event.regarding?.name ?? '' } }
}

function isNamespaceGone(error: unknown): boolean {
  if (!(error instanceof KubeApiError)) return false
  return (
    error.causes.some(({ reason }) => reason === 'NamespaceTerminating') || (error.status === 404 && error.details['verb'] === 'create')
  )
}

/** Whether the same request may be taken later: the server is away or busy. */
function mayPass(error: unknown): boolean {
  return !(error instanceof KubeApiError) || error.status >= 500 || isTooManyRequests(error) || error.status === 401
}
