import { AUDIT_LIMITS } from '@thv/kernel/audit-limits'
import type { FieldTable } from './field.ts'
import { flag, integer, listOf, objectOf, oneOf, text } from './value-readers.ts'

/** The types of events that a configuration can select. `audit_dropped` is written in any case. */
export const AUDIT_EVENT_TYPES = [
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
export type AuditEventType = (typeof AUDIT_EVENT_TYPES)[number]

/** Types of events that only virtual servers have. */
export const WORKFLOW_EVENT_TYPES = [
  'workflow_started',
  'workflow_completed',
  'workflow_failed',
  'workflow_timed_out',
  'workflow_step_started',
  'workflow_step_completed',
  'workflow_step_failed',
  'workflow_step_skipped',
] as const
export type WorkflowEventType = (typeof WORKFLOW_EVENT_TYPES)[number]

export interface AuditConfig {
  readonly enabled: boolean
  readonly component?: string
  readonly event_types: readonly (AuditEventType | WorkflowEventType)[]
  readonly exclude_event_types: readonly (AuditEventType | WorkflowEventType)[]
  readonly include_request_data: boolean
  readonly include_response_data: boolean
  readonly detect_application_errors: boolean
  readonly max_data_size: number
  readonly max_delegation_depth: number
  readonly log_file?: string
  readonly max_file_size: number
  readonly max_files: number
  readonly otlp: boolean
}

const MIB = 1024 * 1024

export const AUDIT_FIELDS: FieldTable<AuditConfig> = {
  enabled: { reader: flag, default: true, doc: 'Write audit events.' },
  component: { reader: text(), defaultText: '`name`', doc: 'Name of this component in the events.' },
  event_types: { reader: listOf(oneOf(AUDIT_EVENT_TYPES)), default: [], doc: 'Types of events to write. Empty for all.' },
  exclude_event_types: {
    reader: listOf(oneOf(AUDIT_EVENT_TYPES)),
    default: [],
    doc: 'Types of events to leave out, even when `event_types` lists them.',
  },
  include_request_data: { reader: flag, default: false, doc: 'Add the JSON-RPC request to the event, with secrets removed.' },
  include_response_data: { reader: flag, default: false, doc: 'Add the JSON-RPC response to the event, with secrets removed.' },
  detect_application_errors: {
    reader: flag,
    default: true,
    doc: 'Report JSON-RPC errors and failed tools inside an HTTP 200 as `application_error` instead of `success`.',
  },
  max_data_size: {
    reader: integer({ min: 0, max: AUDIT_LIMITS.dataBytes }),
    default: 1024,
    doc: 'Bytes of a request or response that an event may hold; a larger one is left out.',
  },
  max_delegation_depth: {
    reader: integer({ min: 0, max: AUDIT_LIMITS.delegationDepth }),
    default: 10,
    doc: 'Maximum number of actors of a delegation chain in an event.',
  },
  log_file: { reader: text(), doc: 'File to append events to. Standard output without it.' },
  max_file_size: { reader: integer({ min: 1024 }), default: 100 * MIB, doc: 'Bytes after which `log_file` is renamed to `log_file.1`.' },
  max_files: { reader: integer({ min: 1, max: 1_000 }), default: 5, doc: 'Files to keep, the current one included.' },
  otlp: { reader: flag, default: false, doc: 'Send events to `telemetry_config.endpoint` as OTLP log records too.' },
}

/** Of a virtual server. */
export const VIRTUAL_AUDIT_FIELDS: FieldTable<AuditConfig> = {
  ...AUDIT_FIELDS,
  event_types: { ...AUDIT_FIELDS.event_types, reader: listOf(oneOf([...AUDIT_EVENT_TYPES, ...WORKFLOW_EVENT_TYPES])) },
  exclude_event_types: { ...AUDIT_FIELDS.exclude_event_types, reader: listOf(oneOf([...AUDIT_EVENT_TYPES, ...WORKFLOW_EVENT_TYPES])) },
}

export const auditReader = objectOf(AUDIT_FIELDS, { anySpelling: true })
