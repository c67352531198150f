import type { MutableHeaderMap } from '@thv/http/header-map'
import type { ResponseFlow, ResponseSink } from '@thv/http/outbound/outbound-call'
import { ClientAnswer } from '@thv/http/server/client-answer'
import type { Clock } from '@thv/kernel/clock'
import { ThvError } from '@thv/kernel/errors'
import { HEADERS } from '@thv/mcp/header-names'
import { errorResponse, type RequestId, serialise } from '@thv/mcp/json-rpc'
import { messageFrame } from '@thv/mcp/sse-encoder'
import { errorObjectOf, type Rejection } from '@thv/mcp/wire-errors'
import type { Pipeline } from '@thv/middleware/pipeline/pipeline'
import type { MessageContext } from '@thv/middleware/pipeline/request-context'
import { brokenAnswer, connectionLost, rejectionOf, unanswered } from '../response/backend-rejection.ts'
import { noteFailure, noteResponseBytes } from '../response/outcome.ts'
import { AnswerFrames, editedBody, editedFrames } from './answer-frames.ts'
import { CallCancellation } from './call-cancellation.ts'
import type { WatchedCall } from './call-watch.ts'
import { encodedAnswer, isEncoded } from './encoded-answer.ts'
import { HeldBody } from './held-body.ts'
import { bytesKind, responseKind } from './response-check.ts'
import { frameData } from './sse-frames.ts'

export interface RelayLimits {
  /** A JSON answer up to here is looked at before it is passed on, and goes out in one piece. */
  readonly inspectBytes: number
  /** A list that middleware edit has to fit into memory. */
  readonly editBytes: number
  readonly idleMs: number
}

export interface RelayOptions {
  readonly pipeline: Pipeline
  readonly clock: Clock
  readonly limits: RelayLimits
  /** Statuses that the caller wants to see before the client does. */
  readonly holds: (status: number) => boolean
}

/** An answer that has not been passed on. */
export interface HeldAnswer {
  readonly status: number
  readonly headers: MutableHeaderMap
  readonly body: Buffer
}

/** `inspect` turns into `stream` when the answer is large; `edit` never does. */
type Mode = 'hold' | 'inspect' | 'stream' | 'edit' | 'frames'

const STREAM_HEADERS = ['cache-control', 'no-store', 'x-accel-buffering', 'no']

/**
 * One POST to an HTTP backend and the way of its answer to the client. Bytes pass through as they are; they are only cut at the ends of
 * events, so that an answer that breaks off can be completed with an error that names the call. Results that middleware edit are
 * the exception: they are held until they are whole.
 */
export class RelayCall implements ResponseSink, WatchedCall {
  readonly startedAt: number
  lastActivityAt: number
  idleLimitMs: number
  place = -1
  readonly signal = new CallCancellation()
  /** Set when the answer had a status that the caller asked to see. */
  held: HeldAnswer | undefined
  /** Set when the answer was of no use; nothing has been sent to the client. */
  refusal: Rejection | undefined
  readonly #context: MessageContext
  readonly #options: RelayOptions
  readonly #answer: ClientAnswer
  readonly #id: RequestId | undefined
  /** Middleware edit the result. */
  readonly #edits: boolean
  readonly #body = new HeldBody()
  #mode: Mode = 'hold'
  #status = 0
  #headers: MutableHeaderMap = {}
  #flow: ResponseFlow | undefined
  #frames: AnswerFrames | undefined

  constructor(context: MessageContext, options: RelayOptions) {
    this.#context = context
    this.#options = options
    this.#answer = new ClientAnswer(context.exchange)
    const { received } = context
    this.#id = received.kind === 'request' ? received.id : undefined
    this.#edits = received.kind === 'request' && options.pipeline.edits(received.method)
    this.startedAt = this.lastActivityAt = options.clock.monotonic()
    this.idleLimitMs = options.limits.idleMs
    // A modern client that goes away cancels its call; a legacy one does not.
    if (context.era !== 'modern') return
    context.exchange.addEventListener('abort', this)
    if (context.exchange.aborted) this.handleEvent()
  }

  /** The client went away. */
  handleEvent(): void {
    this.signal.cancel(this.#context.exchange.reason)
  }

  expire(why: 'silent' | 'too long'): void {
    this.signal.cancel(new ThvError('timeout', `the backend was ${why === 'silent' ? 'silent for too long' : 'at it for too long'}`))
  }

  start(status: number, headers: MutableHeaderMap, flow: ResponseFlow): void {
    this.lastActivityAt = this.#options.clock.monotonic()
    this.#status = status
    this.#headers = headers
    this.#flow = flow
    headers[HEADERS.sessionId] = undefined // of the backend's side
    if (this.#context.credentials !== undefined) headers['www-authenticate'] = undefined // a challenge to our credentials
    this.#mode = this.#modeOf(status, headers)
    if (this.#mode === 'stream') this.#answer.begin(status, headers)
    if (this.#mode === 'frames') {
      const { editBytes, inspectBytes } = this.#options.limits
      this.#frames = new AnswerFrames(
        this.#id,
        this.#edits ? { maxHeldBytes: editBytes, onLarge: 'fail' } : { maxHeldBytes: inspectBytes, onLarge: 'pass' },
      )
      headers['cache-control'] = headers['x-accel-buffering'] = undefined
      this.#answer.begin(status, headers, STREAM_HEADERS)
    }
  }

  data(chunk: Buffer): void {
    this.lastActivityAt = this.#options.clock.monotonic()
    if (this.#mode === 'stream') this.#answer.write(chunk, this.#flow)
    else if (this.#frames !== undefined) this.#pass(this.#frames, chunk)
    else this.#collect(chunk)
  }

  end(): void {
    switch (this.#mode) {
      case 'stream':
        this.#answer.end()
        return
      case 'frames':
        this.#endFrames(unanswered())
        return
      case 'hold':
        this.held = { status: this.#status, headers: this.#headers, body: this.#body.take() }
        return
      default:
        this.#endWhole(this.#body.take())
    }
  }

  /** The call failed. True when the client received an error here; else the caller answers. */
  failed(error: unknown): boolean {
    if (!this.#answer.begun) return this.#answer.closed
    if (this.#frames?.atBoundary) this.#endFrames(rejectionOf(error) ?? connectionLost())
    else this.#answer.cut(error)
    return true
  }

  #modeOf(status: number, headers: MutableHeaderMap): Mode {
    if (this.#options.holds(status) || (status === 401 && this.#context.credentials !== undefined)) return 'hold'
    if (isEncoded(headers)) throw encodedAnswer()
    // A list is a list whatever the status: clients take many for success.
    if (status !== 200 && !this.#edits) return 'inspect'
    if (isEventStream(headers)) return 'frames'
    return this.#edits ? 'edit' : 'inspect'
  }

  #collect(chunk: Buffer): void {
    const { editBytes, inspectBytes } = this.#options.limits
    const limit = this.#mode === 'edit' ? editBytes : inspectBytes
    if (this.#body.length + chunk.length <= limit) {
      this.#body.append(chunk)
      return
    }
    if (this.#mode !== 'inspect') throw new ThvError('message_too_large', `an answer that has to be held is over ${limit} bytes`)
    this.#mode = 'stream'
    this.#answer.begin(this.#status, this.#headers)
    this.#body.append(chunk)
    this.#answer.write(this.#body.take(), this.#flow)
  }

  #pass(frames: AnswerFrames, chunk: Buffer): void {
    const { answered } = frames
    const whole = frames.push(chunk)
    if (whole === undefined) return
    if (!answered && frames.answered) this.#noteFrames(whole)
    if (frames.hasQuestion) this.idleLimitMs = Infinity // people take their time
    this.#answer.write(this.#edits ? editedFrames(whole, (text) => this.#editedText(text)) : whole, this.#flow)
  }

  /** An answer that is passed on in pieces is too large to be judged. */
  #noteFrames(frames: Buffer): void {
    const { pipeline } = this.#options
    if (!pipeline.observesEnd) return
    const id = this.#id
    const answer = id === undefined ? undefined : frameData(frames).find((text) => responseKind(text, id) === 'ours')
    if (answer === undefined) this.#context.outcome = 'ok'
    else noteResponseBytes(this.#context, Buffer.from(answer), pipeline)
  }

  #endFrames(rejection: Rejection): void {
    const id = this.#id
    // A legacy stream with event ids may be closed at any time: its client comes back for the rest.
    const mayBreakOff = this.#frames?.answered || (this.#frames?.resumable && this.#context.era === 'legacy')
    if (id !== undefined && !mayBreakOff) {
      noteFailure(this.#context, rejection)
      this.#answer.write(Buffer.from(messageFrame(serialise(errorResponse(id, errorObjectOf(rejection))))), undefined)
    }
    this.#answer.end()
  }

  #editedText(text: string): string {
    return this.#options.pipeline.responseText(this.#context, text)
  }

  /** A message of another call, or one that is no response, does not get out under this one. */
  #endWhole(body: Buffer): void {
    const id = this.#id
    if (id === undefined || this.#status !== 200) {
      this.#answer.whole(this.#status, this.#headers, this.#edits ? editedBody(body, (text) => this.#editedText(text)) : body)
      return
    }
    const kind = bytesKind(body, id)
    if (kind === 'ours') noteResponseBytes(this.#context, body, this.#options.pipeline)
    if (kind === 'ours') this.#answer.whole(200, this.#headers, this.#edits ? Buffer.from(this.#editedText(body.toString('utf8'))) : body)
    else this.refusal = brokenAnswer(kind === 'foreign' ? 'the answer belongs to another call' : 'the answer is not a JSON-RPC response')
  }
}

export function isEventStream(headers: MutableHeaderMap): boolean {
  const type = headers['content-type']
  return typeof type === 'string' && /^text\/event-stream\s*(;|$)/i.test(type)
}
