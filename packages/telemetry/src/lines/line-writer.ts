import { createBackoff } from '@thv/kernel/backoff'
import { type Clock, systemClock, type Timer } from '@thv/kernel/clock'
import type { LineOutput, WriteCallback } from './line-output.ts'

export interface LineWriterOptions {
  readonly output: LineOutput
  readonly clock?: Clock
  /** Bytes that may wait, the write under way included. */
  readonly maxBytes?: number
  /** The line that says how many were dropped, written as soon as there is room again. */
  readonly droppedLine: (count: number) => string
  readonly onDropped?: (count: number) => void
  /** Told once when writing begins to fail. */
  readonly onFailure?: (error: unknown) => void
}

const MAX_BYTES = 8 * 1024 * 1024
/** Under load lines are collected this long, so that a write serves many of them. After a pause the first line is written at once. */
const COLLECT_MS = 5
/** A reader that is slow is asked again soon, a device that fails less often. */
const FULL_WAIT = { baseMs: 5, maxMs: 250 }
const FAILURE_WAIT = { baseMs: 100, maxMs: 5_000 }
const CLOSE_MS = 5_000

/**
 * Writes lines without ever delaying who writes them: a bounded queue and one asynchronous write under way. A line that does not fit is
 * dropped and counted, and a line says so later. `write` makes no promise and no closure.
 */
export class LineWriter {
  readonly #options: LineWriterOptions
  readonly #clock: Clock
  readonly #maxBytes: number
  readonly #full = createBackoff(FULL_WAIT)
  readonly #failure = createBackoff(FAILURE_WAIT)
  /** A write, a wait between two writes or an attempt after a failure is under way. */
  #busy = false
  #lines: string[] = []
  #waitingBytes = 0
  #batch: Buffer | undefined
  #offset = 0
  #dropped = 0
  #unreported = 0
  #failing = false
  #collecting: Timer | undefined
  #closed = false
  #onIdle: (() => void) | undefined

  constructor(options: LineWriterOptions) {
    this.#options = options
    this.#clock = options.clock ?? systemClock
    this.#maxBytes = options.maxBytes ?? MAX_BYTES
  }

  /** Lines that were never written. */
  get dropped(): number {
    return this.#dropped
  }

  /** Bytes that wait or are being written. */
  get waitingBytes(): number {
    return this.#waitingBytes
  }

  /** `line` ends with a line feed. */
  write(line: string): void {
    const bytes = Buffer.byteLength(line)
    if (this.#closed || this.#waitingBytes + bytes > this.#maxBytes) {
      this.#drop(1)
      return
    }
    this.#lines.push(line)
    this.#waitingBytes += bytes
    if (!this.#busy) this.#next()
  }

  /** Takes no more lines, and resolves when all are written, the signal aborts or five seconds have passed. */
  async close(signal?: AbortSignal): Promise<void> {
    this.#closed = true
    if (this.#collecting !== undefined) {
      this.#collecting.cancel()
      this.#onCollected()
    }
    if (this.#busy) {
      const idle = new AbortController()
      this.#onIdle = () => idle.abort()
      const ends = AbortSignal.any(signal === undefined ? [idle.signal] : [idle.signal, signal])
      await this.#clock.sleep(CLOSE_MS, ends).catch(() => undefined) // idle, or told to stop
    }
    const left = this.#lines.length + (this.#batch === undefined ? 0 : linesIn(this.#batch, this.#offset))
    if (left > 0) this.#drop(left)
    this.#batch = undefined
    await this.#options.output.close()
  }

  #drop(count: number): void {
    this.#dropped += count
    this.#unreported += count
    this.#options.onDropped?.(count)
  }

  /** Begins the next batch; idle when there is none. */
  #next(): void {
    this.#busy = true
    const text = this.#take()
    if (text === '') {
      this.#busy = false
      this.#onIdle?.()
      return
    }
    this.#batch = Buffer.from(text)
    this.#offset = 0
    this.#begin(this.#batch)
  }

  #take(): string {
    const { maxBatchBytes } = this.#options.output
    let text = ''
    let taken = 0
    for (const line of this.#lines) {
      if (text !== '' && text.length + line.length > maxBatchBytes) break
      text += line
      taken++
    }
    this.#lines = this.#lines.slice(taken)
    return text
  }

  #begin(batch: Buffer): void {
    const begun = this.#options.output.begin(batch.length - this.#offset)
    if (begun === undefined) this.#write(batch)
    else
      void begun.then(
        () => this.#write(batch),
        (error: unknown) => this.#failed(error, batch),
      )
  }

  #write(batch: Buffer): void {
    if (this.#batch !== batch) return // closed meanwhile
    this.#options.output.write(batch, this.#offset, this.#onWritten)
  }

  readonly #onWritten: WriteCallback = (error, written) => {
    const batch = this.#batch
    if (batch === undefined) return
    if (error !== null) {
      this.#failed(error, batch)
      return
    }
    this.#full.reset()
    this.#failure.reset()
    this.#failing = false
    this.#offset += written
    if (this.#offset < batch.length) {
      this.#write(batch)
      return
    }
    this.#batch = undefined
    this.#waitingBytes -= batch.length
    if (this.#unreported > 0) this.#reportDropped()
    if (this.#lines.length > 0 && !this.#closed) this.#collecting = this.#clock.setTimer(COLLECT_MS, this.#onCollected)
    else this.#next()
  }

  readonly #onCollected = (): void => {
    this.#collecting = undefined
    this.#next()
  }

  /** Goes on where it stopped; on a new file with the line in which it stopped. */
  #failed(error: unknown, batch: Buffer): void {
    if (this.#batch !== batch) return // closed meanwhile
    const code = error instanceof Error && 'code' in error ? error.code : undefined
    if (code === 'EAGAIN') {
      this.#clock.setTimer(this.#full.next(), () => this.#write(batch))
      return
    }
    if (!this.#failing) this.#options.onFailure?.(error)
    this.#failing = true
    const isFull = code === 'ENOSPC' || code === 'EDQUOT'
    if (!isFull) {
      this.#offset = this.#offset === 0 ? 0 : batch.lastIndexOf(LINE_FEED, this.#offset - 1) + 1
      this.#options.output.reset()
    }
    this.#clock.setTimer(this.#failure.next(), () => this.#resume(batch, isFull))
  }

  #resume(batch: Buffer, isFull: boolean): void {
    if (this.#batch !== batch) return // closed meanwhile
    if (isFull && this.#offset > 0) this.#write(batch)
    else this.#begin(batch)
  }

  #reportDropped(): void {
    const line = this.#options.droppedLine(this.#unreported)
    this.#unreported = 0
    this.#lines.push(line)
    this.#waitingBytes += Buffer.byteLength(line)
  }
}

const LINE_FEED = 0x0a

function linesIn(bytes: Buffer, offset: number): number {
  let count = 0
  for (let at = offset; at < bytes.length; at++) if (bytes[at] === LINE_FEED) count++
  return count
}
