import { noteResponse, noteResponseBytes } from '@thv/gateway/response/outcome'
import type { Reply } from '@thv/gateway/response/reply'
import type { Clock } from '@thv/kernel/clock'
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
import { NOTIFICATIONS } from '@thv/mcp/methods'
import type { ParsedRequest } from '@thv/mcp/parse-body'
import { errorObjectOf, isRejection, type Rejection, reject } from '@thv/mcp/wire-errors'
import type { Pipeline } from '@thv/middleware/pipeline/pipeline'
import type { MessageContext } from '@thv/middleware/pipeline/request-context'
import type { Log } from '@thv/telemetry/log'
import { formatTraceparent } from '@thv/telemetry/trace/trace-context'
import { LocalRefusal } from '../members/local-refusal.ts'
import type { Member } from '../members/member.ts'
import { callFailure, circuitOpen } from './call-failure.ts'
import type { RetryPolicy } from './retry-policy.ts'
import { sendRequest } from './send-request.ts'
import { SilenceLimit } from './silence-limit.ts'

export interface CallDeps {
  readonly clock: Clock
  readonly log: Log
  readonly pipeline: Pipeline
}

/** The part of a client that a call uses. */
export interface CallingClient {
  readonly era: McpClient['era']
  /** A text is the whole response, ready for the client. */
  request(method: string, params?: JsonObject, options?: RequestOptions): Promise<JsonObject | string>
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
  projectError(error: ErrorObject, client: CallingClient): { readonly error: ErrorObject; readonly status: number }
}

/** The call, for work of this program that answers it. */
export interface RunningWork {
  readonly signal: AbortSignal
  progress(progress: JsonObject): void
}

/** A call that lasts longer becomes a stream, so that nothing on the way takes the connection for dead. */
const STREAM_AFTER_MS = 5_000

/** One request of a client on its way to a backend and back. */
export class VirtualCall {
  readonly #options: VirtualCallOptions
  readonly #abort = new AbortController()
  readonly #token: string | number | undefined
  readonly #silence: SilenceLimit
  #isAbandoned = false

  constructor(options: VirtualCallOptions) {
    this.#options = options
    this.#token = progressTokenOf(metaOf(options.request.message))
    const { deps, timeoutMs } = options
    this.#silence = new SilenceLimit({
      ...{ clock: deps.clock, timeoutMs, isAsking: () => options.isAsking() },
      onSilent: (error) => this.#abort.abort(error),
    })
  }

  get signal(): AbortSignal {
    return this.#abort.signal
  }

  /** The client does not want the answer any more; the backend is notified. */
  abandon(reason: string): void {
    if (this.#abort.signal.aborted) return
    this.#isAbandoned = true
    this.#abort.abort(new ThvError('aborted', reason))
    this.#options.reply.abandon()
  }

  /** Sends the request and answers the client. Never rejects for a failure of the backend. */
  async run(member: Member, client: CallingClient, { params, ...given }: { readonly params: JsonObject } & RequestOptions): Promise<void> {
    const { request, deps, timeoutMs, retry, isIdempotent } = this.#options
    const retryAfterMs = member.health.admit()
    if (retryAfterMs !== undefined) return this.#fail({ error: circuitOpen(member.name, retryAfterMs), status: 200 })
    const slow = deps.clock.setTimer(STREAM_AFTER_MS, () => void this.#options.reply.openStream())
    this.#silence.heard()
    const options: RequestOptions = {
      ...given,
      signal: this.#abort.signal,
      onNotification: (notification) => this.#notified(notification),
      ...(this.#token !== undefined && { onProgress: (progress: JsonObject) => this.#progressed(progress) }),
    }
    try {
      const traced = withTrace(params, this.#options.context.trace)
      const result = await sendRequest(member, () => client.request(request.method, traced, options), {
        ...{ clock: deps.clock, signal: this.#abort.signal, retry, isIdempotent },
      })
      if (typeof result === 'string') this.#finishText(result)
      else this.#finish(this.#options.project(result, client))
    } catch (error) {
      if (this.#isAbandoned) return
      const challenge = error instanceof LocalRefusal ? error.challenge : undefined
      if (challenge !== undefined) return this.#challenge(challenge)
      const failure = callFailure(error, { backend: member.name, timeoutMs })
      if (failure === undefined || !failure.isAnswer)
        deps.log.warn('a call failed at a backend', { backend: member.name, method: request.method, error: errorMessage(error) })
      if (failure === undefined) this.#fail({ error: errorObjectOf(reject('internal_error')), status: 200 })
      else this.#fail(failure.isAnswer ? this.#options.projectError(failure.error, client) : { error: failure.error, status: 200 })
    } finally {
      slow.cancel()
      this.#silence.end()
    }
  }

  /** Answers by work of this program, which keeps its own time. */
  async work(work: (running: RunningWork) => Promise<JsonObject | Rejection>): Promise<void> {
    const { deps, request } = this.#options
    const slow = deps.clock.setTimer(STREAM_AFTER_MS, () => void this.#options.reply.openStream())
    try {
      const result = await work({ signal: this.#abort.signal, progress: (progress) => this.#progress(progress) })
      if (isRejection(result)) this.reject(result)
      else this.#finish(result)
    } catch (error) {
      if (this.#isAbandoned) return
      deps.log.error('a call failed', { method: request.method, error: errorMessage(error) })
      this.#fail({ error: errorObjectOf(reject('internal_error')), status: 200 })
    } finally {
      slow.cancel()
    }
  }

  /** Answers without a backend. */
  finish(result: JsonObject): void {
    this.#finish(result)
  }

  reject(rejection: Rejection, status = 200): void {
    this.#fail({ error: errorObjectOf(rejection), status })
  }

  #finish(result: JsonObject): void {
    const { request, reply, context, deps } = this.#options
    if (this.#isAbandoned) return
    const message = resultResponse(request.id, result)
    const text = serialise(message)
    noteResponse(context, { kind: 'response', message, id: request.id, method: undefined, text }, deps.pipeline)
    reply.finish(text)
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
  #challenge(rejection: Rejection): void {
    const { request, reply, context, deps } = this.#options
    const message = errorResponse(request.id, errorObjectOf(rejection))
    noteResponse(context, { kind: 'response', message, id: request.id, method: undefined, text: serialise(message) }, deps.pipeline)
    reply.reject(rejection, request.id)
  }

  #progressed(progress: JsonObject): void {
    this.#silence.heard()
    this.#progress(progress)
  }

  #progress(progress: JsonObject): void {
    if (this.#token === undefined || this.#isAbandoned) return
    const params = { ...progress, progressToken: this.#token }
    this.#options.reply.event(serialise({ jsonrpc: '2.0', method: NOTIFICATIONS.progress, params }), { kind: 'progress' })
  }

  #notified({ method, params = {} }: JsonRpcNotification): void {
    this.#silence.heard()
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
