import { abortable, withTimeLimit } from '@thv/kernel/deadline'
import { errorMessage, isThvError } from '@thv/kernel/errors'
import {
  type ErrorObject,
  errorResponse,
  type JsonObject,
  type JsonRpcRequest,
  type JsonRpcResponse,
  type RequestId,
  resultResponse,
} from '../json-rpc.ts'
import { METHODS } from '../methods.ts'
import { type ClientContext, handlerFor } from './client-context.ts'
import { McpErrorResponse } from './client-errors.ts'
import type { ClientHandler, ClientHandlers } from './mcp-client.ts'

export interface ServerRequestsOptions {
  readonly context: ClientContext
  send(response: JsonRpcResponse, signal: AbortSignal): Promise<void>
}

/** Answers what a legacy server asks: pings, and what there are handlers for. Everything else is a method that does not exist. */
export class ServerRequests {
  readonly #options: ServerRequestsOptions
  readonly #running = new Map<RequestId, AbortController>()

  constructor(options: ServerRequestsOptions) {
    this.#options = options
  }

  /** `signal` is that of the call on whose stream the request came. */
  answer(request: JsonRpcRequest, handlers: ClientHandlers, signal?: AbortSignal): void {
    const { context } = this.#options
    this.#answer(request, handlers, signal).catch((error: unknown) =>
      context.warn(`no answer to ${request.method}: ${errorMessage(error)}`),
    )
  }

  /** The server does not want the answer any more, so it gets none. */
  cancel(id: unknown): void {
    const controller = this.#running.get(id as RequestId)
    this.#running.delete(id as RequestId)
    controller?.abort()
  }

  close(): void {
    for (const controller of this.#running.values()) controller.abort()
  }

  async #answer(request: JsonRpcRequest, handlers: ClientHandlers, signal: AbortSignal | undefined): Promise<void> {
    const { id, method } = request
    const handler = handlerFor(method, handlers)
    if (method === METHODS.ping) await this.#send(resultResponse(id, {}), signal)
    else if (!handler) await this.#send(errorResponse(id, { code: -32601, message: 'Method not found' }), signal)
    else if (this.#running.size >= this.#options.context.limits.maxServerRequests) await this.#send(errorResponse(id, BUSY), signal)
    else await this.#handle(request, handler, signal)
  }

  async #handle({ id, params = {} }: JsonRpcRequest, handler: ClientHandler, signal: AbortSignal | undefined): Promise<void> {
    const controller = new AbortController()
    this.#running.set(id, controller)
    try {
      const life = signal ? AbortSignal.any([signal, controller.signal]) : controller.signal
      const response = await responseBy(() => abortable(Promise.resolve(handler(params, { signal: life })), life), id)
      if (!life.aborted) await this.#send(response, life)
    } finally {
      if (this.#running.get(id) === controller) this.#running.delete(id)
    }
  }

  async #send(response: JsonRpcResponse, signal: AbortSignal | undefined): Promise<void> {
    const { clock, limits } = this.#options.context
    const timeoutMs = Math.min(limits.timeoutMs, SEND_LIMIT_MS)
    const limit = { clock, timeoutMs, what: 'an answer to the server', signals: [signal] }
    await withTimeLimit(limit, (limited) => this.#options.send(response, limited))
  }
}

async function responseBy(handler: () => Promise<JsonObject>, id: RequestId): Promise<JsonRpcResponse> {
  try {
    return resultResponse(id, await handler())
  } catch (error) {
    return errorResponse(id, errorOf(error))
  }
}

/** Holds where requests have no limit too. */
const SEND_LIMIT_MS = 60_000
const BUSY: ErrorObject = { code: -32603, message: 'Too many requests at a time' }

/** A handler may choose its error; of any other failure the server learns no more than that there was one. */
function errorOf(error: unknown): ErrorObject {
  if (!(error instanceof McpErrorResponse))
    return { code: -32603, message: isThvError(error) ? `Internal error (${error.code})` : 'Internal error' }
  const { rpcCode: code, message, data } = error
  return data === undefined ? { code, message } : { code, message, data }
}
