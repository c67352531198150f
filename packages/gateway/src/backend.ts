import type { Exchange } from '@thv/http/server/exchange'
import type { Rejection } from '@thv/mcp/wire-errors'
import type { RequestContext } from '@thv/middleware/pipeline/request-context'

/**
 * The MCP server behind the proxy, as the front sees it. The front has read, parsed and classified the request, checked Host and
 * Origin, run the chain; the upstream answers the exchange itself, because only it knows whether the answer streams.
 * What it throws before the answer has begun is mapped to a coded error by the front; afterwards the connection is cut.
 * A later bridge between eras is another Backend around one of these.
 */
export interface Backend {
  readonly status: BackendStatus
  /** A request, notification or response that the client POSTed to `/mcp`. Modern notifications do not get here. */
  post(context: RequestContext): Promise<void>
  /** The standalone stream of a legacy session, or the resumption of one of its streams. */
  openStream(exchange: Exchange, session: SessionUse): Promise<void>
  endSession(exchange: Exchange, session: SessionUse): Promise<void>
  /** GET or DELETE without a session id, for backends that have no sessions. Absent: 400. */
  withoutSession?(exchange: Exchange, principal: string): Promise<void>
  /** HTTP+SSE (2024-11-05): `GET /sse` and `POST /messages`. Absent where it is not spoken. */
  readonly sse?: SseEndpoint
  /** False where `/mcp` is not spoken, as with HTTP+SSE; absent means true. */
  readonly streamable?: boolean
  /** No new work; what is under way ends at its own pace until the signal aborts. */
  drain(signal: AbortSignal): Promise<void>
  close(): Promise<void>
}

export interface SseEndpoint {
  open(exchange: Exchange, principal: string): Promise<void>
  /** `context.sessionId` is what the `endpoint` event told the client. */
  message(context: RequestContext): Promise<void>
  /** An in-band refusal of the chain: 202 to the POST, the error on the client's stream. */
  refuse(context: RequestContext, rejection: Rejection): Promise<void>
}

export interface SessionUse {
  readonly sessionId: string
  readonly principal: string
  readonly lastEventId: string | undefined
}

export interface BackendStatus {
  readonly ready: boolean
  /** For people: why it is not ready. */
  readonly message: string
  /** What the backend is known to speak; undefined until something told. */
  readonly eras: readonly ('legacy' | 'modern')[] | undefined
  /** The versions to list in -32022, where the backend told them; what it lists in `server/discover` must hold them. */
  readonly versions?: readonly string[] | undefined
  readonly sessions: number
  readonly inFlight: number
}
