import { ThvError } from '@thv/kernel/errors'
import { ByteAccumulator } from './byte-accumulator.ts'

export interface SseEvent {
  /** The id this event itself carries; the sticky one is `SseDecoder.lastEventId`. */
  readonly id?: string
  /** Absent means `message`. */
  readonly event?: string
  readonly data: string
  /** Reconnection time in milliseconds, if one stood in the same block. */
  readonly retry?: number
}

export interface SseLimits {
  readonly maxLineBytes?: number
  /** Limit of one event: the bytes of all its data lines, its name and its id. */
  readonly maxEventBytes?: number
}

/** Room for one answer of the size that the gateway takes from a backend. */
const DEFAULT_MAX_BYTES = 100 * 1024 * 1024

/**
 * Server-sent events after the rules of the WHATWG HTML standard. How the bytes are cut into chunks makes no difference. Bytes that
 * are not UTF-8 become U+FFFD, as the standard says; an event without its blank line at the end of the stream is dropped.
 * A line or event over its limit throws `message_too_large`, after the events before it were handed over; the decoder is of no
 * use from then on.
 */
export class SseDecoder {
  readonly #onEvent: (event: SseEvent) => void
  readonly #maxLineBytes: number
  readonly #maxEventBytes: number
  readonly #partial = new ByteAccumulator() // the line that is not complete yet
  #markBytes = 0 // of the byte order mark that may stand at the start of the stream
  #atStart = true
  #afterCr = false // a line feed that comes next belongs to the line end that was handled already
  #block = newBlock()
  #lastEventId = ''
  #retry: number | undefined
  #failure: ThvError | undefined

  constructor(onEvent: (event: SseEvent) => void, limits: SseLimits = {}) {
    this.#onEvent = onEvent
    this.#maxLineBytes = limits.maxLineBytes ?? DEFAULT_MAX_BYTES
    this.#maxEventBytes = limits.maxEventBytes ?? DEFAULT_MAX_BYTES
  }

  /** The `Last-Event-ID` to send when the stream breaks now; also set by blocks that hold nothing but an id. */
  get lastEventId(): string {
    return this.#lastEventId
  }

  /** The last `retry` of the stream, also from blocks without data, which are no events. The caller bounds it. */
  get retry(): number | undefined {
    return this.#retry
  }

  push(chunk: Uint8Array): void {
    if (this.#failure) throw this.#failure
    const bytes = this.#atStart ? this.#withoutMark(chunk) : chunk
    let start = 0
    if (this.#afterCr && bytes.length > 0) {
      this.#afterCr = false
      if (bytes[0] === LF) start = 1
    }
    let lf = bytes.indexOf(LF, start)
    let cr = bytes.indexOf(CR, start)
    while (lf !== -1 || cr !== -1) {
      const end = cr === -1 || (lf !== -1 && lf < cr) ? lf : cr
      this.#completeLine(bytes.subarray(start, end))
      start = end + 1
      if (end === cr) {
        if (start === bytes.length) this.#afterCr = true
        else if (bytes[start] === LF) start++
      }
      if (lf !== -1 && lf < start) lf = bytes.indexOf(LF, start)
      if (cr !== -1 && cr < start) cr = bytes.indexOf(CR, start)
    }
    if (start < bytes.length) this.#keepPartial(bytes.subarray(start))
  }

  /** Cuts a byte order mark off the start of the stream, even if it comes in pieces. */
  #withoutMark(chunk: Uint8Array): Uint8Array {
    let i = 0
    while (i < chunk.length && this.#markBytes < BYTE_ORDER_MARK.length && chunk[i] === BYTE_ORDER_MARK[this.#markBytes]) {
      this.#markBytes++
      i++
    }
    const isMark = this.#markBytes === BYTE_ORDER_MARK.length
    if (!isMark && i === chunk.length) return NOTHING // it may go on in the next chunk
    this.#atStart = false
    if (!isMark) this.#keepPartial(BYTE_ORDER_MARK.subarray(0, this.#markBytes)) // it only began like one
    return chunk.subarray(i)
  }

  #keepPartial(bytes: Uint8Array): void {
    if (this.#partial.length + bytes.length > this.#maxLineBytes) this.#fail('line', this.#maxLineBytes)
    this.#partial.append(bytes)
  }

  #completeLine(rest: Uint8Array): void {
    if (this.#partial.length + rest.length > this.#maxLineBytes) this.#fail('line', this.#maxLineBytes)
    const line = this.#partial.take(rest)
    if (line.length === 0) this.#dispatch()
    else this.#field(line)
  }

  #field(line: Buffer): void {
    const colon = line.indexOf(COLON)
    if (colon === 0) return // a comment
    const nameEnd = colon === -1 ? line.length : colon
    const name = line.toString('latin1', 0, Math.min(nameEnd, LONGEST_NAME + 1))
    if (name !== 'data' && name !== 'event' && name !== 'id' && name !== 'retry') return
    const value = line.toString('utf8', line[nameEnd + 1] === SPACE ? nameEnd + 2 : nameEnd + 1)
    if (name === 'retry') {
      if (/^[0-9]+$/.test(value)) this.#retry = this.#block.retry = Math.min(Number(value), Number.MAX_SAFE_INTEGER)
      return
    }
    this.#block.bytes += line.length
    if (this.#block.bytes > this.#maxEventBytes) this.#fail('event', this.#maxEventBytes)
    if (name === 'data') this.#block.data.push(value)
    else if (name === 'event') this.#block.event = value
    else if (!value.includes('\0')) this.#block.id = value
  }

  #dispatch(): void {
    const { id, event, data, retry } = this.#block
    if (id !== undefined) this.#lastEventId = id
    this.#block = newBlock()
    if (data.length === 0) return
    this.#onEvent({
      ...(id === undefined ? undefined : { id }),
      ...(event === '' ? undefined : { event }),
      data: data.length === 1 ? (data[0] ?? '') : data.join('\n'),
      ...(retry === undefined ? undefined : { retry }),
    })
  }

  #fail(what: 'line' | 'event', limit: number): never {
    this.#partial.clear()
    this.#failure = new ThvError('message_too_large', `an SSE ${what} is over the limit of ${limit} bytes`, { details: { what, limit } })
    throw this.#failure
  }
}

export interface DecodeOptions extends SseLimits {
  /** Told about each decoder state worth keeping for a reconnect, before the events of the same chunk are given out. */
  readonly onState?: (state: Pick<SseDecoder, 'lastEventId' | 'retry'>) => void
}

/** The events of a stream of chunks, pulled one chunk at a time. Errors of the source pass through. */
export async function* decodeSse(
  source: AsyncIterable<Uint8Array>,
  options: DecodeOptions = {},
): AsyncGenerator<SseEvent, void, undefined> {
  const events: SseEvent[] = []
  const decoder = new SseDecoder((event) => events.push(event), options)
  for await (const chunk of source) {
    const failure = failureOf(decoder, chunk)
    options.onState?.(decoder)
    yield* events.splice(0)
    if (failure) throw failure.error
  }
}

/** The events before the fault must come out first. */
function failureOf(decoder: SseDecoder, chunk: Uint8Array): { error: unknown } | undefined {
  try {
    decoder.push(chunk)
    return undefined
  } catch (error) {
    return { error }
  }
}

interface Block {
  id: string | undefined
  event: string
  data: string[]
  retry: number | undefined
  bytes: number
}

function newBlock(): Block {
  return { id: undefined, event: '', data: [], retry: undefined, bytes: 0 }
}

const LF = 0x0a
const CR = 0x0d
const SPACE = 0x20
const COLON = 0x3a
const LONGEST_NAME = 'event'.length
const BYTE_ORDER_MARK = Uint8Array.of(0xef, 0xbb, 0xbf)
const NOTHING = new Uint8Array(0)
