import { createBackoff } from '@thv/kernel/backoff'
import type { Clock, Timer } from '@thv/kernel/clock'
import { aborted } from '@thv/kernel/deadline'

/** The collector's answer. `retryAfterMs`: as it asks. */
export interface SendResult {
  readonly status: number
  readonly retryAfterMs?: number | undefined
}

export interface BatchQueueOptions<T> {
  readonly clock: Clock
  /** Sends one batch. Rejects when there is no answer. */
  readonly send: (items: readonly T[]) => Promise<SendResult>
  readonly onDropped: (count: number, why: DropReason) => void
  /** Told once when sending begins to fail. */
  readonly onFailure: (why: string) => void
  readonly maxItems?: number
  /** The size of an item; absent: items are small, and their number alone is bounded. */
  readonly bytesOf?: (item: T) => number
  /** Bytes that may wait, beside the batch under way. */
  readonly maxBytes?: number
  readonly batchItems?: number
  readonly intervalMs?: number
}

/** `full`: more came than could be sent. `refused`: the collector will never take it. `unsent`: it could not be reached in time. */
export type DropReason = 'full' | 'refused' | 'unsent'

const MAX_ITEMS = 4_096
const MAX_BYTES = 8 * 1024 * 1024
const BATCH_ITEMS = 512
const INTERVAL_MS = 5_000
const MAX_ATTEMPTS = 6
/** Retryable by the OTLP specification, "OTLP/HTTP Response". */
const RETRYABLE: ReadonlySet<number> = new Set([429, 502, 503, 504])
const MAX_RETRY_AFTER_MS = 60_000
const PAYLOAD_TOO_LARGE = 413

/**
 * A bounded queue that is sent in batches, one at a time: every few seconds, or sooner when a batch is full. `add` makes no promise and
 * never waits.
 */
export class BatchQueue<T> {
  readonly #options: Required<BatchQueueOptions<T>>
  readonly #backoff = createBackoff({ baseMs: 1_000, maxMs: 30_000 })
  #items: T[] = []
  #bytes = 0
  #timer: Timer | undefined
  #sending: Promise<void> | undefined
  #isClosed = false
  #isFailing = false
  #closing = new AbortController()

  constructor(options: BatchQueueOptions<T>) {
    const limits = { maxItems: MAX_ITEMS, maxBytes: MAX_BYTES, batchItems: BATCH_ITEMS, intervalMs: INTERVAL_MS }
    this.#options = { bytesOf: () => 0, ...limits, ...options }
  }

  get size(): number {
    return this.#items.length
  }

  add(item: T): void {
    const { maxItems, maxBytes, bytesOf, batchItems, intervalMs, clock, onDropped } = this.#options
    const bytes = bytesOf(item)
    if (this.#isClosed || this.#items.length >= maxItems || this.#bytes + bytes > maxBytes) {
      onDropped(1, 'full')
      return
    }
    this.#items.push(item)
    this.#bytes += bytes
    if (this.#sending !== undefined) return
    if (this.#items.length >= batchItems) this.#start()
    else this.#timer ??= clock.setTimer(intervalMs, this.#onTimer)
  }

  /** Sends what waits, until the signal aborts; the rest is dropped. */
  async close(signal: AbortSignal): Promise<void> {
    this.#isClosed = true
    this.#timer?.cancel()
    const stop = () => this.#closing.abort()
    if (signal.aborted) stop()
    else signal.addEventListener('abort', stop, { once: true })
    while ((this.#sending !== undefined || this.#items.length > 0) && !this.#closing.signal.aborted) {
      if (this.#sending === undefined) this.#start()
      await Promise.race([this.#sending, aborted(this.#closing.signal)])
    }
    if (this.#items.length > 0) this.#options.onDropped(this.#items.splice(0).length, 'unsent')
    signal.removeEventListener('abort', stop)
  }

  readonly #onTimer = (): void => {
    this.#timer = undefined
    if (this.#sending === undefined && this.#items.length > 0) this.#start()
  }

  #start(): void {
    this.#timer?.cancel()
    this.#timer = undefined
    this.#sending = this.#sendAll().finally(() => {
      this.#sending = undefined
      if (this.#items.length > 0 && !this.#isClosed) this.#timer ??= this.#options.clock.setTimer(this.#options.intervalMs, this.#onTimer)
    })
  }

  /** Until less than a batch is left. */
  async #sendAll(): Promise<void> {
    const { batchItems } = this.#options
    do {
      await this.#sendBatch(this.#take(batchItems))
    } while ((this.#items.length >= batchItems || (this.#isClosed && this.#items.length > 0)) && !this.#closing.signal.aborted)
  }

  #take(count: number): readonly T[] {
    const taken = this.#items.splice(0, count)
    for (const item of taken) this.#bytes -= this.#options.bytesOf(item)
    return taken
  }

  async #sendBatch(items: readonly T[]): Promise<void> {
    const { clock, onDropped } = this.#options
    for (let attempt = 1; ; attempt++) {
      const { status, retryAfterMs } = await this.#attempt(items)
      if (status >= 200 && status < 300) {
        this.#backoff.reset()
        this.#isFailing = false
        return
      }
      if (status === PAYLOAD_TOO_LARGE && items.length > 1) return await this.#sendHalves(items)
      this.#failed(status)
      if (status !== 0 && !RETRYABLE.has(status)) return onDropped(items.length, 'refused')
      if (attempt >= MAX_ATTEMPTS || this.#closing.signal.aborted) return onDropped(items.length, 'unsent')
      const waitMs = Math.min(MAX_RETRY_AFTER_MS, Math.max(retryAfterMs ?? 0, this.#backoff.next()))
      await clock.sleep(waitMs, this.#closing.signal).catch(() => undefined) // closing: one more attempt
    }
  }

  async #sendHalves(items: readonly T[]): Promise<void> {
    const middle = Math.ceil(items.length / 2)
    await this.#sendBatch(items.slice(0, middle))
    await this.#sendBatch(items.slice(middle))
  }

  /** Status 0: there was no answer. */
  async #attempt(items: readonly T[]): Promise<SendResult> {
    try {
      return await this.#options.send(items)
    } catch {
      return { status: 0 } // reported as a failure, without the text of the system
    }
  }

  #failed(status: number): void {
    if (!this.#isFailing) this.#options.onFailure(status === 0 ? 'no answer' : `status ${status}`)
    this.#isFailing = true
  }
}
