import type { MutableHeaderMap } from '@thv/http/header-map'
import type { OutboundRequest } from '@thv/http/outbound/outbound-call'
import { OutboundError } from '@thv/http/outbound/outbound-error'
import type { Clock } from '@thv/kernel/clock'
import { errorMessage, isThvError } from '@thv/kernel/errors'
import { HEADERS } from '@thv/mcp/header-names'
import { encodeHeaderValue } from '@thv/mcp/header-value'
import { NOTIFICATIONS } from '@thv/mcp/methods'
import { nameOf } from '@thv/mcp/modern-headers'
import type { Pipeline } from '@thv/middleware/pipeline/pipeline'
import type { MessageContext } from '@thv/middleware/pipeline/request-context'
import type { Log } from '@thv/telemetry/log'
import { RejectedError } from '../response/rejected-error.ts'
import type { BackendClient } from './backend-client.ts'
import { CallWatch } from './call-watch.ts'
import { type HeldAnswer, RelayCall, type RelayOptions } from './relay-call.ts'
import type { HttpBackendLimits } from './relay-limits.ts'

export interface HttpCallsOptions {
  readonly pipeline: Pipeline
  readonly clock: Clock
  readonly log: Log
  readonly limits: HttpBackendLimits
  /** A call could not even be sent. */
  readonly onUnreachable: () => void
}

/** The POSTs of clients on their way to the backend, each with its limits of time and size. */
export class HttpCalls {
  readonly #options: HttpCallsOptions
  readonly #watch: CallWatch
  readonly #plain: RelayOptions
  readonly #inSession: RelayOptions
  #onQuiet: (() => void) | undefined

  constructor(options: HttpCallsOptions) {
    const { pipeline, clock, limits } = options
    this.#options = options
    this.#watch = new CallWatch(clock, limits)
    const holds = (status: number) => status >= 500 || (status >= 300 && status < 400)
    this.#plain = { pipeline, clock, limits, holds }
    // The two ways in which servers say that they do not know a session.
    this.#inSession = { pipeline, clock, limits, holds: (status) => status === 404 || status === 400 || holds(status) }
  }

  get inFlight(): number {
    return this.#watch.size
  }

  /**
   * Sends the request and passes the answer on. What comes back instead has not been passed on: a failure, a redirect to somewhere
   * else, or (`backendId` given) a status that may mean that the backend has forgotten the session. Rejects when there is no answer
   * and the client has no answer yet.
   */
  relay(backend: BackendClient, context: MessageContext, backendId?: string): Promise<HeldAnswer | undefined> {
    return this.#relay(backend, { context, path: backend.path(context.exchange), backendId, isRepeated: false }, 0)
  }

  /** Resolves when no call is under way, or when the signal aborts. */
  async quiet(signal: AbortSignal): Promise<void> {
    if (this.#watch.size === 0 || signal.aborted) return
    const { promise, resolve } = Promise.withResolvers<void>()
    this.#onQuiet = resolve
    signal.addEventListener('abort', () => resolve(), { once: true })
    await promise
  }

  close(): void {
    this.#watch.close()
  }

  /** One promise for the whole way, as every call goes it. */
  async #relay(backend: BackendClient, sending: Sending, redirects: number): Promise<HeldAnswer | undefined> {
    const { context, path, backendId, isRepeated } = sending
    const call = new RelayCall(context, backendId === undefined ? this.#plain : this.#inSession)
    const request = this.#requestOf(backend, sending, call)
    this.#watch.add(call)
    try {
      await backend.target.send(request, call)
    } catch (error) {
      if (error instanceof OutboundError && !error.sent) this.#options.onUnreachable()
      if (isThvError(error, 'timeout')) this.#cancel(backend, sending)
      if (!call.failed(error)) throw error
    } finally {
      this.#watch.delete(call)
      if (this.#watch.size === 0) this.#onQuiet?.()
    }
    if (call.refusal !== undefined) throw new RejectedError(call.refusal)
    const { held } = call
    if (held === undefined) return undefined
    if (held.status === 401 && !isRepeated && (await backend.renewCredentials(context)))
      return await this.#relay(backend, { ...sending, isRepeated: true }, redirects)
    const moved = backend.movedPath(path, held, redirects)
    return moved === undefined ? held : await this.#relay(backend, { ...sending, path: moved }, redirects + 1)
  }

  /** Time is kept by the watch, as it depends on what the backend says meanwhile. */
  #requestOf(backend: BackendClient, { context, path, backendId }: Sending, { signal }: RelayCall): OutboundRequest {
    const headers = backend.headers(context, headersFor(context, backendId))
    const { responseBytes: maxResponseBytes } = this.#options.limits
    const { outgoing } = context
    return { method: 'POST', path, headers, body: outgoing.text, signal, maxResponseBytes, headersTimeoutMs: 0, bodyTimeoutMs: 0 }
  }

  /** A legacy backend needs a cancellation notice; the end of the connection says nothing to it. */
  #cancel(backend: BackendClient, { context, path, backendId }: Sending): void {
    const { received, era } = context
    if (era !== 'legacy' || received.kind !== 'request') return
    const params = { requestId: received.id, reason: 'time limit of the proxy' }
    const body = JSON.stringify({ jsonrpc: '2.0', method: NOTIFICATIONS.cancelled, params })
    const set = headersFor(context, backendId)
    backend.ask(context, { method: 'POST', path, set, body, timeoutMs: CANCEL_MS }).catch((error: unknown) => {
      this.#options.log.debug('could not cancel a call at the backend', { error: errorMessage(error) })
    })
  }
}

interface Sending {
  readonly context: MessageContext
  readonly path: string
  readonly backendId: string | undefined
  /** It was sent before, with credentials that the backend refused. */
  readonly isRepeated: boolean
}

const CANCEL_MS = 5_000

function headersFor({ era, outgoing, received }: MessageContext, backendId: string | undefined): MutableHeaderMap {
  // Plain names: an object of computed ones costs five times as much, for every call.
  const set: MutableHeaderMap = { 'mcp-session-id': backendId, 'last-event-id': undefined }
  // A modern backend checks that the header repeats the body.
  if (outgoing !== received && era === 'modern' && outgoing.kind === 'request') {
    const name = nameOf(outgoing.message)
    if (name !== undefined) set[HEADERS.name] = encodeHeaderValue(name)
  }
  return set
}
