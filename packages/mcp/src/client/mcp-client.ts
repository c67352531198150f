import type { Cancellation } from '@thv/http/cancellation'
import type { Clock } from '@thv/kernel/clock'
import type { LogLevel } from '../envelope.ts'
import type { JsonObject, JsonRpcNotification, RequestId } from '../json-rpc.ts'
import type { Era, LegacyVersion } from '../versions.ts'
import type { ClientLimits } from './client-limits.ts'

/** A client of one MCP server, whatever its transport and era. */
export interface McpClient extends AsyncDisposable {
  /**
   * Finds out the era and does the handshake, if there is one. Once only, however often it is called; every other method does it too
   * where it is still to be done, and again after the server has forgotten its session.
   */
  connect(options?: CallOptions): Promise<void>
  /** The result of the server as it came. Rejects with McpErrorResponse for a JSON-RPC error, else with a coded error. */
  request(method: string, params?: JsonObject, options?: RequestOptions): Promise<JsonObject>
  /**
   * As `request`, for a request that is written already. A plain result of a legacy server over streamable HTTP comes back as the text of the
   * response, unread; everything else as `request` has it.
   */
  pass(method: string, params: JsonObject, options: PassOptions): Promise<JsonObject | string>
  /** All items of a list method, page by page. */
  list(method: string, options?: ListOptions): Promise<readonly JsonObject[]>
  notify(method: string, params?: JsonObject, options?: CallOptions): Promise<void>
  /** Does the server answer? `server/discover` in the modern era, else `ping`: neither has an effect. */
  ping(options?: CallOptions): Promise<void>
  /**
   * Hears about changes until it is closed: `subscriptions/listen`, or the standalone stream and `resources/subscribe` in the legacy era.
   * Broken streams are opened again; what happened in between is lost, of which `onGap` tells.
   */
  listen(filter: ListenFilter, options: ListenOptions): Promise<Listening>
  /** Ends the session and all that waits. Never rejects. */
  close(): Promise<void>
  /** Undefined until connected. It may change when the server is replaced by one of another age. */
  readonly era: Era | undefined
  readonly protocolVersion: string | undefined
  readonly transport: ClientTransport | undefined
  readonly serverInfo: JsonObject | undefined
  /** Empty where the server did not say. */
  readonly capabilities: JsonObject
  readonly instructions: string | undefined
}

export type ClientTransport = 'streamable-http' | 'sse' | 'stdio'

export interface CallOptions {
  readonly signal?: AbortSignal | undefined
  /** For everything together, also a reconnect on the way. */
  readonly timeoutMs?: number | undefined
}

export interface RequestOptions extends CallOptions {
  /** Ends the request as the signal does, which is then asked for only where one is needed. For one listener at a time. */
  readonly cancellation?: Cancellation | undefined
  /** Params of a `notifications/progress` for this request. The server is asked for progress only if this is given. */
  readonly onProgress?: ((progress: JsonObject) => void) | undefined
  /**
   * Other notifications that came on the stream of this request, instead of the client's `onNotification`. On shared streams (stdio,
   * HTTP+SSE) nothing says to which request one belongs, so there all of them go to the client's.
   */
  readonly onNotification?: ((notification: JsonRpcNotification) => void) | undefined
  /** Instead of the client's, for what the server asks during this request (legacy: on the stream of this request). */
  readonly handlers?: ClientHandlers | undefined
  /** Modern only: declared for this request instead of the client's. */
  readonly capabilities?: JsonObject | undefined
  /** Modern only: log messages from this level on. A legacy server has `logging/setLevel`. */
  readonly logLevel?: LogLevel | undefined
  /** Modern only: hand an `input_required` result to the caller instead of answering it by the handlers. */
  readonly returnInputRequired?: boolean | undefined
}

export interface PassOptions extends RequestOptions {
  /** The text of the request under this id; with the id as progress token where `onProgress` is given. */
  write(id: RequestId): string
  /** The id of the response. */
  readonly answerId: RequestId
}

export interface ListOptions extends CallOptions {
  /** Beside the cursor. */
  readonly params?: JsonObject | undefined
}

/** The notifications wanted, by their names on the modern wire. */
export interface ListenFilter {
  readonly toolsListChanged?: boolean
  readonly promptsListChanged?: boolean
  readonly resourcesListChanged?: boolean
  readonly resourceSubscriptions?: readonly string[]
}

export interface ListenOptions extends CallOptions {
  onNotification(notification: JsonRpcNotification): void
  /** The stream was interrupted and is open again: whatever was listed before may have changed. */
  onGap?(): void
}

export interface Listening extends AsyncDisposable {
  /** The notifications that the server agreed to send, at first. */
  readonly honoured: ListenFilter
  /** Resolves when closed; rejects when the server refuses to be listened to any longer. */
  readonly done: Promise<void>
  close(): Promise<void>
}

/** Answers what a server asks. A rejection becomes the error of that answer, or (modern) of the whole request. */
export type ClientHandler = (params: JsonObject, context: { readonly signal: AbortSignal }) => JsonObject | Promise<JsonObject>

export interface ClientHandlers {
  /** `sampling/createMessage` */
  readonly sampling?: ClientHandler | undefined
  /** `elicitation/create` */
  readonly elicitation?: ClientHandler | undefined
  /** `roots/list` */
  readonly roots?: ClientHandler | undefined
}

export interface ClientInfo extends JsonObject {
  readonly name: string
  readonly version: string
}

export interface ClientOptions {
  readonly clientInfo: ClientInfo
  readonly handlers?: ClientHandlers | undefined
  /** Capabilities declared to the server; unless given, those with handlers. */
  readonly capabilities?: JsonObject | undefined
  /** `auto` finds it out. */
  readonly era?: 'auto' | Era | undefined
  /** To ask for in the handshake; the newest unless given. */
  readonly legacyVersion?: LegacyVersion | undefined
  /** Messages that belong to no request of this client. */
  readonly onNotification?: ((notification: JsonRpcNotification) => void) | undefined
  /** Errors without a waiting call. One line, without secrets of ours; it may quote the server. */
  readonly onWarning?: ((text: string) => void) | undefined
  readonly clock?: Clock | undefined
  readonly limits?: Partial<ClientLimits> | undefined
}
