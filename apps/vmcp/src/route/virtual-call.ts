import { noteResponse } from '@thv/gateway/response/outcome'
import type { Reply } from '@thv/gateway/response/reply'
import { createBackoff } from '@thv/kernel/backoff'
import type { Clock, Timer } from '@thv/kernel/clock'
import { errorMessage, ThvError } from '@thv/kernel/errors'
import type { McpClient, RequestOptions } from '@thv/mcp/client/mcp-client'
import { metaOf, progressTokenOf } from '@thv/mcp/envelope'
import { type ErrorObject, errorResponse, type JsonObject, type JsonRpcNotification, resultResponse, serialise } from '@thv/mcp/json-rpc'
import { NOTIFICATIONS } from '@thv/mcp/methods'
import type { ParsedRequest } from '@thv/mcp/parse-body'
import { errorObjectOf, type Rejection, reject } from '@thv/mcp/wire-errors'
import type { Pipeline } from '@thv/middleware/pipeline/pipeline'
import type { MessageContext } from '@thv/middleware/pipeline/request-context'
import type { Log } from '@thv/telemetry/log'
import type { Member } from '../members/member.ts'
import { callFailure, circuitOpen } from './call-failure.ts'
import { mayRepeat, type RetryPolicy } from './retry-policy.ts'

export interface CallDeps {
  readonly clock: Clock
  readonly log: Log
  readonly pipeline: Pipeline
}

/** The part of a client that a call uses. */
export type CallingClient = Pick<McpClient, 'request' | 'era'>

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

/** A call that lasts longer becomes a stream, so that nothing on the way takes the connection for dead. */
const STREAM_AFTER_MS = 5_000
const TOTAL_MS = 600_000
const MAX_BACKOFF_MS = 10_000

/** One request of a client on its way to a backend and back. */
export class VirtualCall {
  readonly #options: VirtualCallOptions
  readonly #abort = new AbortController()
  readonly #token: string | number | undefined
  readonly #startedAt: number
  #silence: Timer | undefined
  #isAbandoned = false

  constructor(options: VirtualCallOptions) {
    this.#options = options
    this.#token = progressTokenOf(metaOf(options.request.message))
    this.#startedAt = options.deps.clock.monotonic()
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
    const { request, deps, timeoutMs } = this.#options
    const retryAfterMs = member.health.admit()
    if (retryAfterMs !== undefined) return this.#fail({ error: circuitOpen(member.name, retryAfterMs), status: 200 })
    const slow = deps.clock.setTimer(STREAM_AFTER_MS, () => void this.#options.reply.openStream())
    this.#heard()
    const options: RequestOptions = {
      ...given,
      signal: this.#abort.signal,
      onNotification: (notification) => this.#notified(notification),
      ...(this.#token !== undefined && { onProgress: (progress: JsonObject) => this.#progressed(progress) }),
    }
    try {
      const result = await this.#send(member, () => client.request(request.method, params, options))
      this.#finish(this.#options.project(result, client))
    } catch (error) {
      if (this.#isAbandoned) return
      const failure = callFailure(error, { backend: member.name, timeoutMs })
      if (failure === undefined || !failure.isAnswer)
        deps.log.warn('a call failed at a backend', { backend: member.name, method: request.method, error: errorMessage(error) })
      if (failure === undefined) this.#fail({ error: errorObjectOf(reject('internal_error')), status: 200 })
      else this.#fail(failure.isAnswer ? this.#options.projectError(failure.error, client) : { error: failure.error, status: 200 })
    } finally {
      slow.cancel()
      this.#silence?.cancel()
    }
  }

  /** Answers without a backend. */
  finish(result: JsonObject): void {
    this.#finish(result)
  }

  reject(rejection: Rejection, status = 200): void {
    this.#fail({ error: errorObjectOf(rejection), status })
  }

  async #send(member: Member, attempt: () => Promise<JsonObject>): Promise<JsonObject> {
    const { retry, isIdempotent, deps } = this.#options
    const backoff =
      retry === undefined ? undefined : createBackoff({ baseMs: retry.backoffMs, maxMs: Math.max(retry.backoffMs, MAX_BACKOFF_MS) })
    for (let attempts = 1; ; attempts++) {
      try {
        return await member.observed(attempt)
      } catch (error) {
        const isOver = retry === undefined || backoff === undefined || attempts >= retry.attempts || this.#abort.signal.aborted
        if (isOver || !mayRepeat(error, retry, isIdempotent)) throw error
        await deps.clock.sleep(backoff.next(), this.#abort.signal)
      }
    }
  }

  #finish(result: JsonObject): void {
    const { request, reply, context, deps } = this.#options
    if (this.#isAbandoned) return
    const message = resultResponse(request.id, result)
    const text = serialise(message)
    noteResponse(context, { kind: 'response', message, id: request.id, method: undefined, text }, deps.pipeline)
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

  #progressed(progress: JsonObject): void {
    this.#heard()
    const params = { ...progress, progressToken: this.#token }
    this.#options.reply.event(serialise({ jsonrpc: '2.0', method: NOTIFICATIONS.progress, params }), { kind: 'progress' })
  }

  #notified({ method, params = {} }: JsonRpcNotification): void {
    this.#heard()
    if (method !== NOTIFICATIONS.message || !this.#options.wantsLog(params)) return
    this.#options.reply.event(serialise({ jsonrpc: '2.0', method, params }), { kind: 'log' })
  }

  /** The backend has shown a sign of life. */
  #heard(): void {
    const { deps, timeoutMs } = this.#options
    this.#silence?.cancel()
    const leftMs = this.#startedAt + Math.max(TOTAL_MS, timeoutMs) - deps.clock.monotonic()
    this.#silence = deps.clock.setTimer(Math.max(0, Math.min(timeoutMs, leftMs)), () => {
      if (this.#options.isAsking() && leftMs > timeoutMs) this.#heard()
      else this.#abort.abort(new ThvError('timeout', `the backend was silent for ${timeoutMs} ms`))
    })
  }
}
