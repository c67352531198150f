import type { Identity } from '@thv/auth/incoming/authenticator'
import type { MutableHeaderMap } from '@thv/http/header-map'
import type { Exchange } from '@thv/http/server/exchange'
import type { Timer } from '@thv/kernel/clock'
import type { ErrorObject } from '@thv/mcp/json-rpc'
import type { ParsedMessage } from '@thv/mcp/parse-body'
import type { Rejection } from '@thv/mcp/wire-errors'
import type { TraceContext } from '@thv/telemetry/trace/trace-context'

export type Era = 'legacy' | 'modern'

/** The client behind a request. Sessions and limits are keyed by its principal. */
export interface Caller {
  readonly principal: string
  /** Absent while nothing authenticates. */
  readonly identity?: Identity | undefined
  /** The bearer token that proved the identity, for an exchange against a token of the backend. Never logged. */
  readonly token?: string | undefined
}

/** The caller of every request until a middleware sets another one. */
export const ANONYMOUS: Caller = { principal: 'anonymous' }

export interface BackendInfo {
  readonly name: string
  readonly transport: string
}

/** One call to one backend on behalf of one caller. A proxy with a single backend uses the request context as its hop. */
export interface Hop {
  /** Undefined for a request of our own, such as a probe: it carries static credentials only. */
  readonly caller: Caller | undefined
  readonly backend: BackendInfo
  readonly exchange: Exchange | undefined
  /** Of the client; undefined for our own requests. */
  readonly era: Era | undefined
  /** The message that this backend gets; undefined for GET, DELETE and our own requests. */
  outgoing: ParsedMessage | undefined
  /** Headers that authenticate at the backend, set by `prepare`. While they are set, the backend's 401 is not passed on. */
  credentials: MutableHeaderMap | undefined
  /** The trace that this call belongs to; undefined while nothing traces. */
  trace: TraceContext | undefined
}

/**
 * `rejected`: answered by the gateway or a middleware instead of the backend. `error`: the backend failed or answered with a JSON-RPC
 * error. `toolError`: a tool's result has `isError`. `aborted`: the client left before it had the whole answer. An open-ended stream
 * that has begun is `ok`, however it ends.
 */
export type Outcome = 'pending' | 'ok' | 'error' | 'toolError' | 'rejected' | 'aborted'

/** The outcome of limits for a request, for audit. */
export interface RateLimitOutcome {
  /** The limit that rejected the request; undefined when it passed. */
  readonly reached: 'server' | 'user' | 'tool' | 'user-tool' | undefined
}

/** The decision of policies about a request, for audit. */
export interface PolicyOutcome {
  readonly decision: 'allow' | 'deny'
  /** Ids of the policies that decided: permits when allowed, forbids when one applied, none when nothing permitted. */
  readonly policies: readonly string[]
  /** Policies that could not be evaluated. One is enough to deny. */
  readonly errors: readonly PolicyError[]
}

export interface PolicyError {
  readonly policy: string
  readonly message: string
}

export interface AuthzOutcome extends PolicyOutcome {
  /** The outcome of candidate policies where they decide otherwise. */
  readonly candidate: PolicyOutcome | undefined
  /** Of a denied tool call: whether a list has named the tool. Undefined while that cannot be said. */
  readonly isListed: boolean | undefined
}

/**
 * One exchange on its way through the gateway. The gateway makes it before any check, so that `end` sees every exchange. All members
 * exist from the start: a middleware that leaves something for another one gets a typed member here.
 */
export interface RequestContext extends Hop {
  readonly exchange: Exchange
  /** `/mcp`, `/sse`, `/messages`, `/metrics`, `/health`, `/ready`, `/.well-known` or a mounted path. Empty when there is no such route. */
  readonly route: string
  /** ANONYMOUS until a middleware sets it in `open`. */
  caller: Caller
  /** This and the next three are set once the request has been read. */
  readonly era: Era | undefined
  /** The message as the client sent it. */
  readonly received: ParsedMessage | undefined
  /** The legacy session that the client named, in its header or (HTTP+SSE) in the query. Always undefined on modern requests. */
  readonly sessionId: string | undefined
  readonly lastEventId: string | undefined
  /** Set for every message that policies judge. */
  authz: AuthzOutcome | undefined
  /** Set for every request that limits apply to. */
  rateLimit: RateLimitOutcome | undefined
  /**
   * Ends the open-ended stream of this exchange at a frame boundary; set by the backend before `streaming`. False: it carries the answers
   * of calls that are under way, so ask again later.
   */
  endStream: (() => boolean) | undefined
  /** Ends the stream when the token that opened it ends. The gateway cancels it with the exchange. */
  streamTimer: Timer | undefined
  outcome: Outcome
  /** The rejection that the client got, if it got one from us. */
  rejection: Rejection | undefined
  /** The JSON-RPC error of the backend's response. Known only where a middleware observes the end. */
  failure: ErrorObject | undefined
  /** The backend's response as text. Kept only where a middleware asks for it (`answerBytes`) and it is not larger than that. */
  answer: string | undefined
  /** An open-ended stream has begun. */
  isStream: boolean
}

/** The context of a POSTed message. */
export interface MessageContext extends RequestContext {
  readonly era: Era
  readonly received: ParsedMessage
  outgoing: ParsedMessage
}

/** The context of a request that names a session. */
export interface SessionContext extends RequestContext {
  readonly sessionId: string
}
