import { ByteAccumulator } from './byte-accumulator.ts'
import type { RequestId } from './json-rpc.ts'
import { DEFAULT_PARSE_LIMITS, type InvalidReason, type ParsedMessage, type ParseLimits, parseBody } from './parse-body.ts'

/** A line that is no message. Servers print all sorts of things to standard output: it is never a reason to give up the pipe. */
export interface Noise {
  readonly reason: InvalidReason
  /** Of a message that is malformed elsewhere, so that its call does not wait in vain. */
  readonly id: RequestId | undefined
  /** The first bytes of the line, for a log that may hold what the server prints. */
  readonly preview: string
}

export interface LineFramerOptions {
  onMessage(message: ParsedMessage): void
  onNoise(noise: Noise): void
  /** 10 MiB unless given, without the line end. */
  readonly maxLineBytes?: number
  readonly maxDepth?: number
}

const DEFAULT_MAX_LINE_BYTES = 10 * 1024 * 1024

/**
 * Cuts what a stdio server writes into messages: one per line, ended by LF or CRLF. Empty lines are skipped. A line over the limit
 * is reported once, dropped without being kept, and the framer goes on with the next.
 */
export class LineFramer {
  readonly #options: LineFramerOptions
  readonly #limits: ParseLimits
  readonly #partial = new ByteAccumulator()
  #isDropping = false

  constructor(options: LineFramerOptions) {
    this.#options = options
    this.#limits = {
      maxBytes: options.maxLineBytes ?? DEFAULT_MAX_LINE_BYTES,
      maxDepth: options.maxDepth ?? DEFAULT_PARSE_LIMITS.maxDepth,
    }
  }

  push(chunk: Uint8Array): void {
    let start = 0
    for (let end = chunk.indexOf(LF); end !== -1; end = chunk.indexOf(LF, start)) {
      this.#completeLine(chunk.subarray(start, end))
      start = end + 1
    }
    if (start < chunk.length) this.#keepPartial(chunk.subarray(start))
  }

  /** The pipe has ended. A last line without its line end is a message all the same, if it is complete. */
  end(): void {
    if (this.#partial.length > 0) this.#line(this.#partial.take(NOTHING))
    this.#isDropping = false
  }

  #completeLine(rest: Uint8Array): void {
    if (this.#isDropping) {
      this.#isDropping = false
      return
    }
    this.#line(this.#partial.take(rest))
  }

  /** One byte more is kept than a line may have: it could be the CR of the line end. */
  #keepPartial(bytes: Uint8Array): void {
    if (this.#isDropping) return
    if (this.#partial.length + bytes.length <= this.#limits.maxBytes + 1) {
      this.#partial.append(bytes)
      return
    }
    this.#isDropping = true
    this.#noise('too_large', this.#partial.take(bytes))
  }

  #line(raw: Buffer): void {
    const line = raw.at(-1) === CR ? raw.subarray(0, -1) : raw
    if (line.length > this.#limits.maxBytes) {
      this.#noise('too_large', line)
      return
    }
    const start = firstNonSpace(line)
    if (start === line.length) return
    if (line[start] !== OPEN_BRACE && line[start] !== OPEN_BRACKET) {
      this.#noise('not_json', line) // most noise is plain text: cheaper than asking the parser
      return
    }
    const parsed = parseBody(line, this.#limits)
    if (parsed.kind === 'invalid') this.#noise(parsed.reason, line, parsed.id)
    else this.#options.onMessage(parsed)
  }

  #noise(reason: InvalidReason, line: Buffer, id?: RequestId): void {
    this.#options.onNoise({ reason, id, preview: line.toString('utf8', 0, Math.min(PREVIEW_BYTES, this.#limits.maxBytes)) })
  }
}

function firstNonSpace(line: Buffer): number {
  let i = 0
  while (i < line.length && (line[i] === 0x20 || line[i] === 0x09 || line[i] === CR)) i++
  return i
}

const PREVIEW_BYTES = 200
const LF = 0x0a
const CR = 0x0d
const OPEN_BRACE = 0x7b
const OPEN_BRACKET = 0x5b
const NOTHING = new Uint8Array(0)
