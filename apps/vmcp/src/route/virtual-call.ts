import { CallCancellation } from '@thv/gateway/relay/call-cancellation'
import { noteResponse, noteResponseBytes } from '@thv/gateway/response/outcome'
import type { Reply } from '@thv/gateway/response/reply'
import type { CancelListener } from '@thv/http/cancellation'
import type { Clock } from '@thv/kernel/clock'
import { abortable } from '@thv/kernel/deadline'
import { errorMessage, ThvError } from '@thv/kernel/errors'
import type { McpClient, RequestOptions } from '@thv/mcp/client/mcp-client'
import { META, metaOf, progressTokenOf } from '@thv/mcp/envelope'
import {
  type ErrorObject,
  errorResponse,
  isObject,
  type JsonObject,
  type JsonRpcNotification,
  resultResponse,
  serialise,
} from '@thv/mcp/json-rpc'
import { METHODS, NOTIFICATIONS } from '@thv/mcp/methods'
import type { ParsedRequest } from '@thv/mcp/parse-body'
import { type LegacyClient, withLinks } from '@thv/mcp/url-elicitation'
import { errorObjectOf, isRejection, type Rejection, reject } from '@thv/mcp/wire-errors'
import type { Pipeline } from '@thv/middleware/pipeline/pipeline'
import type { MessageContext } from '@thv/middleware/pipeline/request-context'
import type { Log } from '@thv/telemetry/log'
import { formatTraceparent } from '@thv/telemetry/trace/trace-context'
import { failureText } from '../members/failure-text.ts'
import { LocalRefusal } from '../members/local-refusal.ts'
import { isLoginChallenge } from '../members/login-challenge.ts'
import type { Member } from '../members/member.ts'
import type { CallDeadlines, TimedCall } from './call-deadlines.ts'
import { callFailure, circuitOpen } from './call-failure.ts'
import { ClientRefused } from './client-refused.ts'
import type { RetryPolicy } from './retry-policy.ts'
import { sendRequest } from './send-request.ts'
import { type CallOptions, type SendingCall, SentOptions } from './sent-options.ts'
import { TOTAL_MS } from './silence-limit.ts'

export interface CallDeps {
  readonly clock: Clock
  readonly log: Log
  readonly pipeline: Pipeline
  readonly deadlines: CallDeadlines
}

/** The part of a client that a call uses. */
export interface CallingClient {
  readonly era: McpClient['era']
  /** A text is the whole response, ready for the client. */
  request(method: string, params: JsonObject, options: CallOptions): Promise<JsonObject | string>
}

export interface VirtualCallOptions {
  readonly context: MessageContext
  readonly request: ParsedRequest
  readonly reply: Reply & { finish(text: string, status?: number): void }
  readonly deps: CallDeps
  /** Silence of the backend after which the call is given up. */
  readonly timeoutMs: number
  /** Undefined: a failed call is not sent again. */
  readonly retry: RetryPolicy | undefined
  readonly isIdempotent: boolean
  /** A person is being asked: silence is no fault of the backend. The limit of the whole call stays. */
  isAsking(): boolean
  /** Whether the client wants to see a log message. */
  wantsLog(params: JsonObject): boolean
  /** The result and the error as this client knows them; the HTTP status of an error. */
  project(result: JsonObject, client: CallingClient): JsonObject
  projectError(error: ErrorObject, client: CallingClient): ProjectedError
  /** Of a client of the handshake era, which says whether it shows links. */
  readonly session?: { readonly client: LegacyClient }
}

/** How a call is sent. */
export interface SentCall extends RequestOptions {
  readonly params: JsonObject
  /** Of a client that cancels its call by hanging up. */
  readonly exchange?: MessageContext['exchange']
}

/** An error of a backend as the client knows it, or the result that it gets instead. */
export type ProjectedError = { readonly error: ErrorObject; readonly status: number } | { readonly result: JsonObject }

/** The call, for work of this program that answers it. */
export interface RunningWork {
  readonly signal: AbortSignal
  progress(progress: JsonObject): void
}

/** A call that lasts longer becomes a stream, so that nothing on the way takes the connection for dead. */
const STREAM_AFTER_MS = 5_000

/** One request of a client on its way to a backend and back. */
export class VirtualCall implements TimedCall, CancelListener, SendingCall {
  place = -1
  readonly #options: VirtualCallOptions
  readonly #token: string | number | undefined
  readonly #cancellation = new CallCancellation()
  readonly #startedAt: number
  #silentAt = Number.POSITIVE_INFINITY
  #streamsAt = Number.POSITIVE_INFINITY
  #abort: AbortController | undefined
  #isAbandoned = false

  constructor(options: VirtualCallOptions) {
    this.#options = options
    this.#token = progressTokenOf(metaOf(options.request.message))
    this.#startedAt = options.deps.clock.monotonic()
  }

  get signal(): AbortSignal {
    if (this.#abort === undefined) {
      this.#abort = new AbortController()
      if (this.#cancellation.aborted) this.#abort.abort(this.#cancellation.reason)
    }
    return this.#abort.signal
  }

  get cancellation(): CallOptions['cancellation'] {
    return this.#cancellation
  }

  get hasToken(): boolean {
    return this.#token !== undefined
  }

  get dueAt(): number {
    return Math.min(this.#silentAt, this.#streamsAt)
  }

  due(now: number): void {
    if (now >= this.#streamsAt) {
      this.#streamsAt = Number.POSITIVE_INFINITY
      this.#options.reply.openStream()
    }
    if (now < this.#silentAt) return
    const { timeoutMs } = this.#options
    if (this.#options.isAsking() && now < this.#lastMoment) {
      this.#heard()
      return
    }
    this.#options.deps.deadlines.delete(this)
    this.#giveUp(new ThvError('timeout', `the backend was silent for ${timeoutMs} ms`))
  }

  /** The client does not want the answer any more; the backend is notified. */
  abandon(reason: string): void {
    if (this.#cancellation.aborted) return
    this.#isAbandoned = true
    this.#giveUp(new ThvError('aborted', reason))
    this.#options.reply.abandon()
  }

  /** The client went away. */
  handleEvent(): void {
    this.abandon('the client went away')
  }

  /** Sends the request and answers the client. Never rejects for a failure of the backend. */
  async run(member: Member, client: CallingClient, given: SentCall): Promise<void> {
    const { request, deps, timeoutMs, retry, isIdempotent } = this.#options
    const { exchange } = given
    if (exchange?.aborted === true) return this.handleEvent()
    const retryAfterMs = member.health.admit()
    if (retryAfterMs !== undefined) return this.#fail({ error: circuitOpen(member.name, retryAfterMs), status: 200 })
    this.#streamsAt = this.#startedAt + STREAM_AFTER_MS
    this.#heard()
    deps.deadlines.add(this)
    exchange?.addEventListener('abort', this)
    try {
      const params = withTrace(given.params, this.#options.context.trace)
      const options = new SentOptions(this, given)
      const attempt = () => client.request(request.method, params, options)
      const result = await (retry === undefined
        ? member.observed(attempt)
        : sendRequest(member, attempt, { clock: deps.clock, signal: () => this.signal, retry, isIdempotent }))
      if (typeof result === 'string') this.#finishText(result)
      else this.#finish(this.#options.project(result, client))
    } catch (error) {
      if (this.#isAbandoned) return
      const challenge = error instanceof LocalRefusal ? error.challenge : undefined
      if (challenge !== undefined) return this.challenge(challenge)
      if (error instanceof ClientRefused) return this.#refused(error, client)
      const failure = callFailure(error, { backend: member.name, timeoutMs })
      if (failure === undefined || !failure.isAnswer)
        deps.log.warn('a call failed at a backend', { backend: member.name, method: request.method, error: failureText(error) })
      if (failure === undefined) this.#fail({ error: errorObjectOf(reject('internal_error')), status: 200 })
      else this.#answerFailure(failure.isAnswer ? this.#options.projectError(failure.error, client) : { error: failure.error, status: 200 })
    } finally {
      deps.deadlines.delete(this)
      exchange?.removeEventListener('abort', this)
    }
  }

  /**
   * Finds out where the call leads, within its time limit and while the client wants it. Undefined: it was given up, and is answered. Nothing is
   * sent meanwhile, as the answer may be an HTTP error.
   */
  async route<T>(find: (signal: AbortSignal) => Promise<T>): Promise<T | undefined> {
    const { deps, timeoutMs } = this.#options
    this.#heard()
    deps.deadlines.add(this)
    try {
      return await abortable(find(this.signal), this.signal)
    } catch (error) {
      if (!this.#cancellation.aborted) throw error
      if (!this.#isAbandoned) this.reject(reject('backend_timeout', { data: { timeoutMs, mayHaveRun: false } }))
      return undefined
    } finally {
      deps.deadlines.delete(this)
    }
  }

  /** Answers by work of this program, which keeps its own time. */
  async work(work: (running: RunningWork) => Promise<JsonObject | Rejection>): Promise<void> {
    const { deps, request } = this.#options
    this.#streamsAt = this.#startedAt + STREAM_AFTER_MS
    deps.deadlines.add(this)
    try {
      const result = await work({ signal: this.signal, progress: (progress) => this.#progress(progress) })
      if (!isRejection(result)) this.#finish(result)
      else if (isLoginChallenge(result)) this.challenge(result)
      else this.reject(result)
    } catch (error) {
      if (this.#isAbandoned) return
      deps.log.error('a call failed', { method: request.method, error: errorMessage(error) })
      this.#fail({ error: errorObjectOf(reject('internal_error')), status: 200 })
    } finally {
      deps.deadlines.delete(this)
    }
  }

  /** Answers without a backend. */
  finish(result: JsonObject): void {
    this.#finish(result)
  }

  reject(rejection: Rejection, status = 200): void {
    this.#fail({ error: errorObjectOf(rejection), status })
  }

  /** The backend has shown a sign of life, or is about to be asked. */
  #heard(): void {
    const { deps, timeoutMs } = this.#options
    this.#silentAt = Math.min(deps.clock.monotonic() + timeoutMs, this.#lastMoment)
  }

  /** The call ends then, whatever its backend says meanwhile. */
  get #lastMoment(): number {
    return this.#startedAt + Math.max(TOTAL_MS, this.#options.timeoutMs)
  }

  #giveUp(reason: ThvError): void {
    this.#cancellation.cancel(reason)
    this.#abort?.abort(reason)
  }

  #finish(result: JsonObject): void {
    const { request, reply, context, deps } = this.#options
    if (this.#isAbandoned) return
    const message = resultResponse(request.id, result)
    const text = serialise(message)
    noteResponse(context, { kind: 'response', message, id: request.id, method: undefined, text }, deps.pipeline)
    reply.finish(text)
  }

  #answerFailure(projected: ProjectedError): void {
    if ('result' in projected) this.#finish(projected.result)
    else this.#fail(projected)
  }

  /** A modern backend asked the client in vain. */
  #refused({ message }: ClientRefused, client: CallingClient): void {
    const text = `The client did not answer what the server asks: ${message}`
    if (this.#options.request.method === METHODS.toolsCall)
      this.#finish(this.#options.project({ content: [{ type: 'text', text }], isError: true }, client))
    else this.#fail({ error: { code: -32603, message: text }, status: 200 })
  }

  #finishText(text: string): void {
    const { reply, context, deps } = this.#options
    if (this.#isAbandoned) return
    if (deps.pipeline.observesEnd) noteResponseBytes(context, Buffer.from(text), deps.pipeline)
    reply.finish(text)
  }

  #fail({ error, status }: { readonly error: ErrorObject; readonly status: number }): void {
    const { request, reply, context, deps } = this.#options
    if (this.#isAbandoned) return
    const message = errorResponse(request.id, error)
    const text = serialise(message)
    noteResponse(context, { kind: 'response', message, id: request.id, method: undefined, text }, deps.pipeline)
    reply.finish(text, status)
  }

  /** An HTTP error while nothing has been sent: clients look for the login that they need in its header. */
  challenge(challenge: Rejection): void {
    const { request, reply, context, deps, session } = this.#options
    const rejection = session === undefined ? challenge : withLinks(challenge, session.client)
    if (rejection.result !== undefined) {
      this.#finish(rejection.result)
      return
    }
    if (rejection.inBand) {
      this.reject(rejection)
      return
    }
    const message = errorResponse(request.id, errorObjectOf(rejection))
    noteResponse(context, { kind: 'response', message, id: request.id, method: undefined, text: serialise(message) }, deps.pipeline)
    reply.reject(rejection, request.id)
  }

  progressed(progress: JsonObject): void {
    this.#heard()
    this.#progress(progress)
  }

  #progress(progress: JsonObject): void {
    if (this.#token === undefined || this.#isAbandoned) return
    const params = { ...progress, progressToken: this.#token }
    this.#options.reply.event(serialise({ jsonrpc: '2.0', method: NOTIFICATIONS.progress, params }), { kind: 'progress' })
  }

  notified({ method, params = {} }: JsonRpcNotification): void {
    this.#heard()
    if (method === NOTIFICATIONS.elicitationComplete && this.#options.session !== undefined)
      this.#options.reply.event(serialise({ jsonrpc: '2.0', method, params }))
    if (method !== NOTIFICATIONS.message || !this.#options.wantsLog(params)) return
    this.#options.reply.event(serialise({ jsonrpc: '2.0', method, params }), { kind: 'log' })
  }
}

/** The backend continues the trace of this call. Its span is the parent, whatever the client wrote. */
function withTrace(params: JsonObject, trace: MessageContext['trace']): JsonObject {
  if (trace === undefined) return params
  const meta = isObject(params['_meta']) ? params['_meta'] : {}
  const state = trace.state === undefined ? {} : { [META.tracestate]: trace.state }
  return { ...params, _meta: { ...meta, [META.traceparent]: formatTraceparent(trace), ...state } }
}
