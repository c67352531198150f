import type { MutableHeaderMap } from '@thv/http/header-map'
import type { JsonObject } from '@thv/mcp/json-rpc'
import type { Rejection } from '@thv/mcp/wire-errors'
import type { Hop, MessageContext, RequestContext } from './request-context.ts'

/** A promise only where the step has to wait: a pipeline of synchronous steps makes none. */
export type Awaitable<T> = T | Promise<T>

/**
 * One step that judges, changes or observes requests. A middleware keeps no state per request: that lives in the context.
 *
 * `open`, `message`, `prepare` and `headers` run in the order of the table in `@thv/runconfig/middleware-table`; `item` and `end` run in
 * reverse. The first rejection ends a step. A rejection with `inBand` reaches the client as a JSON-RPC error with status 200, any other
 * as an HTTP error.
 */
export interface Middleware {
  readonly name: string
  /** Every request to a guarded route, whatever its method, before the body is read. Settles `context.caller`. */
  open?(context: RequestContext): Awaitable<Rejection | undefined>
  /** Every POSTed message: request, notification or response. May replace `context.outgoing`. */
  message?(context: MessageContext): Awaitable<Rejection | undefined>
  /** List methods whose items `item` edits. Lists are edited in one pass for all middleware; other results pass untouched. */
  readonly edits?: readonly string[]
  /** The result of `item` depends on the caller, so no cache may give one caller's list to another. */
  readonly editsPerCaller?: boolean
  /** Returns the same object to keep the item, another one to replace it, undefined to hide it. `method` is the one of the list. */
  item?(context: RequestContext, item: JsonObject, method: string): JsonObject | undefined
  /** Before each hop, after all `message` steps. Sets `hop.credentials` or replaces `hop.outgoing`. */
  prepare?(hop: Hop): Awaitable<Rejection | undefined>
  /**
   * Adds headers to a request to an HTTP backend; names in lower case. The first to set a name wins (`setHeader`), and `hop.credentials`
   * come before all of them. Also called for retries, recovered sessions, cancellations and DELETE.
   */
  headers?(hop: Hop, set: MutableHeaderMap): void
  /** Client headers, in lower case, that reach no backend unless credentials or `headers` set them. */
  readonly withholds?: readonly string[]
  /** The backend answered 401 to `hop.credentials`. True: they are forgotten, and `prepare` can make others for one more attempt. */
  credentialsRejected?(hop: Hop): boolean
  /** An open-ended stream has begun: GET, or `subscriptions/listen`. */
  streaming?(context: RequestContext): void
  /** The backend has announced that its list of tools is another one now. */
  toolsChanged?(): void
  /** Once per exchange: after 404, 408, 413, 503 and aborted streams too. Must not throw. */
  end?(context: RequestContext): void
  /** Responses up to this many bytes are kept in `context.answer` for `end`. Absent: none are. */
  readonly answerBytes?: number
  /** After the last exchange. */
  close?(signal: AbortSignal): Promise<void>
}

/** Sets a header unless it is set already. */
export function setHeader(set: MutableHeaderMap, name: string, value: string | string[] | undefined): void {
  if (!Object.hasOwn(set, name)) set[name] = value
}
