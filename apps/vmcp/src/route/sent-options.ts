import type { Cancellation } from '@thv/http/cancellation'
import type { RequestOptions } from '@thv/mcp/client/mcp-client'
import type { JsonObject, JsonRpcNotification } from '@thv/mcp/json-rpc'

/** Options of one call. The signal is made when it is asked for: clients that use the cancellation instead save a microsecond or two. */
export interface CallOptions extends RequestOptions {
  readonly cancellation: Cancellation & { cancel(reason: unknown): void }
}

/** The call that a request is sent for. */
export interface SendingCall {
  readonly signal: AbortSignal
  readonly cancellation: CallOptions['cancellation']
  /** The client wants to hear of progress. */
  readonly hasToken: boolean
  /** The backend has made progress. */
  progressed(progress: JsonObject): void
  /** The backend has sent another notification. */
  notified(notification: JsonRpcNotification): void
}

/** The signal is no member of its own: a copy of these options has none. */
export class SentOptions implements CallOptions {
  readonly cancellation: CallOptions['cancellation']
  readonly handlers: RequestOptions['handlers']
  readonly capabilities: RequestOptions['capabilities']
  readonly logLevel: RequestOptions['logLevel']
  readonly returnInputRequired: RequestOptions['returnInputRequired']
  readonly onNotification: RequestOptions['onNotification']
  readonly onProgress: RequestOptions['onProgress']
  readonly #call: SendingCall

  constructor(call: SendingCall, { handlers, capabilities, logLevel, returnInputRequired }: RequestOptions) {
    this.#call = call
    this.cancellation = call.cancellation
    this.handlers = handlers
    this.capabilities = capabilities
    this.logLevel = logLevel
    this.returnInputRequired = returnInputRequired
    this.onNotification = (notification) => call.notified(notification)
    this.onProgress = call.hasToken ? (progress) => call.progressed(progress) : undefined
  }

  get signal(): AbortSignal {
    return this.#call.signal
  }
}
