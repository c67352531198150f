import type { ParsedMessage } from '@thv/mcp/parse-body'
import type { Rejection } from '@thv/mcp/wire-errors'
import type { Era, MessageContext, RequestContext, SessionContext } from '@thv/middleware/pipeline/request-context'
import type { ToolSource } from '@thv/middleware/pipeline/tool-source'

/**
 * The MCP server behind a gateway. The gateway has checked Host and Origin, run `open`, read and classified the message and run
 * `message`; the backend answers the exchange itself, because only it knows whether the answer streams. Its promises settle when the
 * answer is complete or when nothing more depends on them; the gateway waits for the end of the response by itself.
 *
 * A backend calls `pipeline.prepare` before each hop, `pipeline.headers` for each HTTP request (retries, recovery, cancellation and
 * DELETE too) and `pipeline.streaming` when an open-ended stream begins. An error that it throws before the answer has begun becomes a
 * coded error; later the connection is cut.
 */
export interface Backend extends Partial<ToolSource> {
  readonly status: BackendStatus
  /** False where `/mcp` is not spoken, as with HTTP+SSE. */
  readonly streamable?: false
  /** A message that stands for another one, which middleware and backend see in its place. Undefined: it stands for itself. */
  translate?(message: ParsedMessage): ParsedMessage | Rejection | undefined
  /** Runs everything that is done for a message, the middleware too. Absent: it is just run. */
  around?<C extends MessageContext, T>(context: C, work: (context: C) => T): T
  /** A message that the client POSTed to `/mcp`. Modern notifications do not get here. */
  post(context: MessageContext): Promise<void>
  /** The standalone stream of a legacy session, or the resumption of one of its streams. */
  openStream(context: SessionContext): Promise<void>
  endSession(context: SessionContext): Promise<void>
  /** GET or DELETE without a session id, for backends without sessions. Absent: 400. */
  withoutSession?(context: RequestContext): Promise<void>
  /** HTTP+SSE (2024-11-05): `GET /sse` and `POST /messages`. Absent where it is not spoken. */
  readonly sse?: SseEndpoint
  /** Takes no new work; calls under way end at their own pace until the signal aborts. */
  drain(signal: AbortSignal): Promise<void>
  close(): Promise<void>
}

/** A message of HTTP+SSE: its session is named in the query. */
export type SseMessageContext = MessageContext & SessionContext

export interface SseEndpoint {
  open(context: RequestContext): Promise<void>
  message(context: SseMessageContext): Promise<void>
  /** An in-band rejection: 202 to the POST, the error on the client's stream. */
  reject(context: SseMessageContext, rejection: Rejection): Promise<void>
}

export interface BackendStatus {
  readonly ready: boolean
  /** Why it is not ready, for people. */
  readonly message: string
  /** The eras that the backend is known to speak; undefined until it has been asked. */
  readonly eras: readonly Era[] | undefined
  /** The versions to list in -32022, as the backend lists them in `server/discover`. */
  readonly versions?: readonly string[] | undefined
  readonly sessions: number
  readonly inFlight: number
  /** The cause, where it is known well enough to tell the owner of the server. */
  readonly problem?: BackendProblem | undefined
}

export interface BackendProblem {
  readonly reason: 'BackendPortClosed' | 'BackendNotMcp' | 'HandshakeTimedOut' | 'ServerEnded' | 'WorkloadForeign' | 'WriteRefused'
  /** One sentence for people. Never holds what the backend said: that may be anything. */
  readonly message: string
}
