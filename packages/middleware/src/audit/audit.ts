import { randomUUID } from 'node:crypto'
import { headerText } from '@thv/http/header-map'
import type { Clock } from '@thv/kernel/clock'
import { META, metaOf } from '@thv/mcp/envelope'
import { isObject, type JsonObject } from '@thv/mcp/json-rpc'
import { METHODS } from '@thv/mcp/methods'
import { errorObjectOf } from '@thv/mcp/wire-errors'
import type { AuditEventType, WorkflowEventType } from '@thv/runconfig/audit-config'
import { scrub, withoutLinks } from '@thv/telemetry/redact'
import type { Middleware } from '../pipeline/middleware.ts'
import type { PolicyOutcome, RequestContext } from '../pipeline/request-context.ts'
import type {
  AuditData,
  AuditEvent,
  AuditExtra,
  AuditOutcome,
  AuditPolicyDecision,
  AuditSource,
  AuditSubjects,
  AuditTarget,
} from './audit-event.ts'
import { delegationOf } from './delegation.ts'
import { eventTypeOf, targetNameOf, targetTypeOf } from './event-type.ts'
import { redactPayload } from './payload.ts'
import { createSafeText } from './safe-text.ts'
import { createSourceAddress, type SourceOptions } from './source-address.ts'

export interface AuditOptions extends SourceOptions {
  readonly component: string
  /** Empty for all. */
  readonly eventTypes: readonly (AuditEventType | WorkflowEventType)[]
  readonly excludeEventTypes: readonly (AuditEventType | WorkflowEventType)[]
  readonly includeRequestData: boolean
  readonly includeResponseData: boolean
  readonly detectApplicationErrors: boolean
  readonly maxDataBytes: number
  readonly maxDelegationDepth: number
}

export interface AuditDeps {
  readonly clock: Clock
  /** Takes every event; must not wait and must not throw. */
  readonly sink: AuditSink
}

export interface AuditSink {
  write(event: AuditEvent): void
  close(signal: AbortSignal): Promise<void>
}

/** Probes of the platform, not of clients. */
const NOT_AUDITED: ReadonlySet<string> = new Set(['/health', '/ready'])

/** One event per exchange, rejected ones included; for an open-ended stream when it opens. */
export function createAudit(options: AuditOptions, { clock, sink }: AuditDeps): Middleware {
  const { includeRequestData, includeResponseData, maxDataBytes } = options
  const isSelected = eventSelector(options)
  const describe = createDescriber(options, clock)

  function record(context: RequestContext): void {
    if (NOT_AUDITED.has(context.route)) return
    const type = eventTypeOf(context)
    if (!isSelected(type)) return
    sink.write(describe(context, type, includeRequestData || includeResponseData ? dataOf(context, options) : undefined))
  }

  return {
    name: 'audit',
    ...(includeResponseData && { answerBytes: maxDataBytes }),
    streaming: record,
    end(context) {
      if (!context.isStream) record(context)
    },
    close: (signal) => sink.close(signal),
  }
}

/** Whether events of a type are written. */
export function eventSelector({ eventTypes, excludeEventTypes }: Pick<AuditOptions, 'eventTypes' | 'excludeEventTypes'>) {
  const included = eventTypes.length === 0 ? undefined : new Set(eventTypes)
  const excluded = new Set(excludeEventTypes)
  return (type: AuditEventType | WorkflowEventType): boolean => !excluded.has(type) && included?.has(type) !== false
}

function createDescriber(options: AuditOptions, clock: Clock) {
  const sourceAddress = createSourceAddress(options)
  const safe = createSafeText(512)

  function sourceOf({ exchange }: RequestContext): AuditSource {
    const agent = headerText(exchange.headers['user-agent'])
    const request = headerText(exchange.headers['x-request-id'])
    const extra = { user_agent: agent && safe(agent), request_id: request && safe(request) }
    return { type: 'network', value: sourceAddress(exchange), extra }
  }

  function subjectsOf(context: RequestContext): AuditSubjects {
    const { identity } = context.caller
    const client = clientInfoOf(context)
    const [name, version] = [client?.['name'], client?.['version']]
    return {
      user: safe(identity === undefined ? 'anonymous' : (identity.displayName ?? identity.subject)),
      user_id: identity && safe(identity.subject),
      issuer: identity && safe(identity.issuer),
      client_name: typeof name === 'string' ? safe(name) : undefined,
      client_version: typeof version === 'string' ? safe(version) : undefined,
    }
  }

  function targetOf(context: RequestContext): AuditTarget {
    const { exchange, received, backend } = context
    const name = targetNameOf(context)
    return {
      endpoint: safe(exchange.path),
      http_method: exchange.method,
      method: received?.method && safe(received.method),
      name: name && safe(name),
      type: targetTypeOf(context),
      backend_name: backend.name,
    }
  }

  function extraOf(context: RequestContext): AuditExtra {
    const { exchange, route, rejection } = context
    const failure = context.failure ?? (rejection === undefined ? undefined : errorObjectOf(rejection))
    return {
      duration_ms: Math.round((clock.monotonic() - exchange.startedAt) * 1_000) / 1_000,
      transport: route === '/sse' || route === '/messages' ? 'sse' : 'http',
      status_code: exchange.begun ? exchange.status : undefined,
      response_size_bytes: exchange.bytesSent,
      rejection: rejection?.error,
      aborted: context.outcome === 'aborted' ? true : undefined,
      jsonrpc_error_code: failure?.code,
      jsonrpc_error_message: failure && safe(withoutLinks(failure.message.slice(0, 256))),
      trace_id: context.trace?.traceId,
      span_id: context.trace?.spanId,
      dropped: undefined,
    }
  }

  return (context: RequestContext, type: AuditEventType, data: AuditData | undefined): AuditEvent => {
    const time = new Date(clock.now()).toISOString()
    return {
      time,
      level: 'AUDIT',
      msg: 'audit_event',
      audit_id: randomUUID(),
      type,
      logged_at: time,
      outcome: auditOutcomeOf(context, options.detectApplicationErrors),
      component: options.component,
      source: sourceOf(context),
      subjects: subjectsOf(context),
      delegation: delegationOf(context.caller.identity?.claims, options.maxDelegationDepth),
      target: targetOf(context),
      authz: authzOf(context),
      rate_limit: rateLimitOf(context),
      metadata: { extra: extraOf(context) },
      data,
    }
  }
}

function authzOf({ authz }: RequestContext): AuditEvent['authz'] {
  return authz && { ...decisionOf(authz), candidate: authz.candidate && decisionOf(authz.candidate), tool_listed: authz.isListed }
}

function decisionOf({ decision, policies, errors }: PolicyOutcome): AuditPolicyDecision {
  return { decision, policies, errors: errors.map(({ policy, message }) => ({ policy, message: scrub(message.slice(0, 256)) })) }
}

function rateLimitOf({ rateLimit }: RequestContext): AuditEvent['rate_limit'] {
  return rateLimit && { decision: rateLimit.reached === undefined ? 'allow' : 'deny', limit: rateLimit.reached }
}

/** By status first, as the client saw it; then by what an answer with a good status says. */
function auditOutcomeOf({ exchange, outcome, rejection, authz }: RequestContext, detectsErrors: boolean): AuditOutcome {
  if (outcome === 'aborted') return 'failure'
  const { status } = exchange
  if (status === 401 || status === 403 || authz?.decision === 'deny') return 'denied'
  if (status >= 500) return 'error'
  if (status >= 400) return 'failure'
  const hasFailed = outcome === 'error' || outcome === 'toolError' || rejection !== undefined
  return hasFailed && detectsErrors ? 'application_error' : 'success'
}

/** Legacy clients introduce themselves in `initialize`, modern ones in every request. */
function clientInfoOf({ received }: RequestContext): JsonObject | undefined {
  if (received === undefined || received.kind === 'response') return undefined
  const info =
    received.method === METHODS.initialize ? received.message.params?.['clientInfo'] : metaOf(received.message)?.[META.clientInfo]
  return isObject(info) ? info : undefined
}

/** Payloads with secrets removed. One that is too large is left out, not cut: half a JSON text is of no use. */
function dataOf({ received, answer }: RequestContext, options: AuditOptions): AuditData | undefined {
  const { includeRequestData, includeResponseData, maxDataBytes } = options
  const isSmall = received !== undefined && received.text.length <= maxDataBytes && Buffer.byteLength(received.text) <= maxDataBytes
  const request = includeRequestData && isSmall ? redactPayload(received.message) : undefined
  const response = includeResponseData && answer !== undefined ? redactPayload(parsed(answer)) : undefined
  return request === undefined && response === undefined ? undefined : { request, response }
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return undefined // the response was not JSON after all; the event has no payload then
  }
}
