import { AUDIT_LIMITS } from '@thv/kernel/audit-limits'
import type { Static } from 'typebox'
import { bool, int32, list, obj, oneOf, opt, str } from '../schema/nodes.ts'
import { compact } from '../schema/normalize.ts'

/** Events of requests. Virtual servers have others besides. */
export const REQUEST_EVENT_TYPES = [
  'mcp_initialize',
  'mcp_tool_call',
  'mcp_tools_list',
  'mcp_resource_read',
  'mcp_resources_list',
  'mcp_prompt_get',
  'mcp_prompts_list',
  'mcp_notification',
  'mcp_ping',
  'mcp_logging',
  'mcp_completion',
  'mcp_roots_list_changed',
  'mcp_request',
  'http_request',
  'sse_connection',
] as const
export type RequestEventType = (typeof REQUEST_EVENT_TYPES)[number]

const eventTypes = (description: string) =>
  list(description, oneOf('Type of event.', REQUEST_EVENT_TYPES), { merge: 'set', maxItems: REQUEST_EVENT_TYPES.length })

/** Audit log of a workload's proxy. */
export const auditConfig = () =>
  obj('Audit log of the calls: one JSON line per request on standard output of the proxy.', {
    enabled: opt(bool('Write audit events. Everything below takes effect only with it.', { default: false })),
    component: opt(str('Name in the events. Defaults to the name of this object.', { minLength: 1, maxLength: 253 })),
    eventTypes: opt(eventTypes('Types of events to write. Defaults to all.')),
    excludeEventTypes: opt(eventTypes('Types of events to leave out. Takes precedence over eventTypes.')),
    includeRequestData: opt(bool('Add the JSON-RPC request to the event, with secrets removed.', { default: false })),
    includeResponseData: opt(bool('Add the JSON-RPC response to the event, with secrets removed.', { default: false })),
    detectApplicationErrors: opt(
      bool('Report JSON-RPC errors and failed tools inside a successful HTTP response as application_error.', { default: true }),
    ),
    maxDataSize: opt(
      int32('Bytes of a request or response that an event may hold; a larger one is left out.', {
        minimum: 0,
        maximum: AUDIT_LIMITS.dataBytes,
        default: 1024,
      }),
    ),
    maxDelegationDepth: opt(
      int32('Maximum number of actors of a delegation chain in an event.', {
        minimum: 0,
        maximum: AUDIT_LIMITS.delegationDepth,
        default: 10,
      }),
    ),
    otlp: opt(bool('Send the events to telemetry.openTelemetry.endpoint as log records too.', { default: false })),
  })

export type AuditConfig = Static<ReturnType<typeof auditConfig>>

export interface CanonicalAuditConfig {
  enabled: boolean
  /** Absent: the name of the workload. */
  component?: string
  eventTypes: RequestEventType[]
  excludeEventTypes: RequestEventType[]
  includeRequestData: boolean
  includeResponseData: boolean
  detectApplicationErrors: boolean
  maxDataSize: number
  maxDelegationDepth: number
  otlp: boolean
}

export function normaliseAuditConfig(value: AuditConfig | undefined): CanonicalAuditConfig {
  return compact({
    enabled: value?.enabled ?? false,
    component: value?.component,
    eventTypes: value?.eventTypes ?? [],
    excludeEventTypes: value?.excludeEventTypes ?? [],
    includeRequestData: value?.includeRequestData ?? false,
    includeResponseData: value?.includeResponseData ?? false,
    detectApplicationErrors: value?.detectApplicationErrors ?? true,
    maxDataSize: value?.maxDataSize ?? 1024,
    maxDelegationDepth: value?.maxDelegationDepth ?? 10,
    otlp: value?.otlp ?? false,
  })
}
