import type { MutableHeaderMap } from '@thv/http/header-map'
import type { Target } from '@thv/http/outbound/outbound'
import type { ResponseSink } from '@thv/http/outbound/outbound-call'
import type { Clock } from '@thv/kernel/clock'
import { ThvError } from '@thv/kernel/errors'
import { linkSignals } from '@thv/kernel/lifecycle'
import { isErrorResponse, isObject, type JsonObject, type RequestId } from '@thv/mcp/json-rpc'
import { type ParsedResponse, parseText } from '@thv/mcp/parse-body'
import { isEventStream } from './relay-call.ts'
import { FrameSplitter, frameData } from './sse-frames.ts'

export interface Question {
  readonly method: 'POST' | 'DELETE'
  readonly path: string
  readonly headers: string[]
  readonly body?: string
  /** Of the request in the body: an event stream is read up to the response to it. Absent: to the end. */
  readonly id?: RequestId
  readonly timeoutMs: number
  readonly signal?: AbortSignal | undefined
}

export interface BackendAnswer {
  readonly status: number
  readonly headers: MutableHeaderMap
  readonly body: Buffer
  /** The response to the question, out of JSON or of an event stream. */
  readonly response: ParsedResponse | undefined
}

/** More than any handshake needs. */
const MAX_BYTES = 4 * 1024 * 1024

/**
 * Asks the backend something whose whole answer is needed before anything else can be done: a handshake, a probe, the end of a
 * session. Rejects as `Target.send` does.
 */
export async function ask(target: Target, clock: Clock, question: Question): Promise<BackendAnswer> {
  const { method, path, headers, body = null, timeoutMs } = question
  const sink = new AskSink(question.id)
  const timer = clock.setTimer(timeoutMs, () => sink.limit.abort(new ThvError('timeout', `no answer within ${timeoutMs} ms`)))
  const signal = linkSignals(sink.limit.signal, question.signal)
  try {
    await target.send({ method, path, headers, body, signal, maxResponseBytes: MAX_BYTES, bodyTimeoutMs: 0 }, sink)
  } catch (error) {
    if (error !== GOT_IT) throw error
  } finally {
    timer.cancel()
  }
  return sink.answer()
}

/** The result of the answer, if it is one. */
export function resultOf(answer: BackendAnswer): JsonObject | undefined {
  const message = answer.response?.message
  if (answer.status !== 200 || message === undefined || isErrorResponse(message)) return undefined
  return isObject(message.result) ? message.result : {}
}

/** Ends a stream that has said what was asked. */
const GOT_IT = new ThvError('aborted', 'the answer is complete')

class AskSink implements ResponseSink {
  readonly limit = new AbortController()
  readonly #id: RequestId | undefined
  readonly #splitter = new FrameSplitter({ maxHeldBytes: MAX_BYTES, onLarge: 'fail' })
  #status = 0
  #headers: MutableHeaderMap = {}
  #chunks: Buffer[] = []
  #streams = false
  #response: ParsedResponse | undefined

  constructor(id: RequestId | undefined) {
    this.#id = id
  }

  start(status: number, headers: MutableHeaderMap): void {
    this.#status = status
    this.#headers = headers
    this.#streams = isEventStream(headers)
  }

  data(chunk: Buffer): void {
    if (!this.#streams) {
      this.#chunks.push(chunk)
      return
    }
    const frames = this.#splitter.push(chunk)
    if (frames === undefined) return
    this.#chunks.push(frames)
    if (this.#id === undefined) return
    this.#response = frameData(frames)
      .map(asResponse)
      .find((response) => response?.id === this.#id)
    if (this.#response !== undefined) throw GOT_IT
  }

  end(): void {
    if (!this.#streams && this.#chunks.length > 0) this.#response = asResponse(Buffer.concat(this.#chunks).toString('utf8'))
  }

  answer(): BackendAnswer {
    return { status: this.#status, headers: this.#headers, body: Buffer.concat(this.#chunks), response: this.#response }
  }
}

function asResponse(text: string): ParsedResponse | undefined {
  const parsed = parseText(text)
  return parsed.kind === 'response' ? parsed : undefined
}
