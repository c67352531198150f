import type { MutableHeaderMap } from '@thv/http/header-map'
import type { Exchange } from '@thv/http/server/exchange'
import { sendEmpty } from '@thv/http/server/respond'
import type { Timer } from '@thv/kernel/clock'
import type { ErrorObject, RequestId } from '@thv/mcp/json-rpc'
import type { ParsedMessage } from '@thv/mcp/parse-body'
import type { Rejection } from '@thv/mcp/wire-errors'
import {
  ANONYMOUS,
  type AuthzOutcome,
  type BackendInfo,
  type Caller,
  type Era,
  type MessageContext,
  type Outcome,
  type RateLimitOutcome,
  type RequestContext,
  type SessionContext,
} from '@thv/middleware/pipeline/request-context'
import type { TraceContext } from '@thv/telemetry/trace/trace-context'
import { sendInBand, sendRejection } from './response/send-rejection.ts'

/** The request context as the gateway fills it in. One class with all members from the start keeps the hot path monomorphic. */
export class ExchangeContext implements RequestContext {
  readonly exchange: Exchange
  readonly route: string
  readonly backend: BackendInfo
  caller: Caller = ANONYMOUS
  era: Era | undefined = undefined
  received: ParsedMessage | undefined = undefined
  outgoing: ParsedMessage | undefined = undefined
  sessionId: string | undefined = undefined
  lastEventId: string | undefined = undefined
  credentials: MutableHeaderMap | undefined = undefined
  authz: AuthzOutcome | undefined = undefined
  rateLimit: RateLimitOutcome | undefined = undefined
  endStream: (() => boolean) | undefined = undefined
  streamTimer: Timer | undefined = undefined
  trace: TraceContext | undefined = undefined
  outcome: Outcome = 'pending'
  rejection: Rejection | undefined = undefined
  failure: ErrorObject | undefined = undefined
  answer: string | undefined = undefined
  isStream = false

  constructor(exchange: Exchange, route: string, backend: BackendInfo) {
    this.exchange = exchange
    this.route = route
    this.backend = backend
  }

  /** The id that an error response repeats; notifications and responses have none. */
  get requestId(): RequestId | undefined {
    return this.received?.kind === 'request' ? this.received.id : undefined
  }

  /** Answers instead of the backend. `id` for a message that could not be read. */
  reject(rejection: Rejection, id: RequestId | undefined = this.requestId): void {
    this.outcome = 'rejected'
    this.rejection = rejection
    if (rejection.inBand === undefined || this.received === undefined) sendRejection(this.exchange, rejection, id)
    else if (id === undefined)
      sendEmpty(this.exchange, 202) // a notification gets no answer
    else sendInBand(this.exchange, rejection, id)
  }

  isMessage(): this is this & MessageContext {
    return this.era !== undefined && this.received !== undefined && this.outgoing !== undefined
  }

  isSession(): this is this & SessionContext {
    return this.sessionId !== undefined
  }
}
