import type { LoginEvent } from '@thv/authserver/login-events'
import type { AuditEventType, WorkflowEventType } from '@thv/runconfig/audit-config'
import type { Delegation } from './delegation.ts'

export type AuditOutcome = 'success' | 'denied' | 'failure' | 'error' | 'application_error'

/** One line of the audit log. `docs/reference/audit-event.schema.json` describes it for readers. */
export interface AuditEvent {
  readonly time: string
  readonly level: 'AUDIT'
  readonly msg: 'audit_event'
  readonly audit_id: string
  readonly type: AuditEventType | WorkflowEventType | SystemEventType | LoginEvent['type']
  readonly logged_at: string
  readonly outcome: AuditOutcome
  readonly component: string
  readonly source: AuditSource
  readonly subjects: AuditSubjects
  readonly delegation: Delegation | undefined
  readonly target: AuditTarget
  /** Of requests that policies judged. */
  readonly authz?: AuditAuthz | undefined
  /** Of requests that limits apply to. */
  readonly rate_limit?: { readonly decision: 'allow' | 'deny'; readonly limit: string | undefined } | undefined
  readonly metadata: { readonly extra: AuditExtra }
  readonly data: AuditData | undefined
}

export interface AuditPolicyDecision {
  readonly decision: 'allow' | 'deny'
  /** Ids of the policies that decided. */
  readonly policies: readonly string[]
  /** Policies that could not be evaluated. */
  readonly errors: readonly { readonly policy: string; readonly message: string }[]
}

export interface AuditAuthz extends AuditPolicyDecision {
  /** Of candidate policies where they decide otherwise. */
  readonly candidate: AuditPolicyDecision | undefined
  /** Of a denied tool call: whether a list through this proxy has named the tool. Absent while no list has passed. */
  readonly tool_listed: boolean | undefined
}

export interface AuditSource {
  readonly type: 'network' | 'local'
  readonly value: string
  readonly extra: { readonly user_agent: string | undefined; readonly request_id: string | undefined } | undefined
}

export interface AuditSubjects {
  readonly user: string
  readonly user_id: string | undefined
  readonly issuer: string | undefined
  readonly client_name: string | undefined
  readonly client_version: string | undefined
}

export interface AuditTarget {
  readonly endpoint: string
  readonly http_method: string
  readonly method: string | undefined
  /** As the client asked for it, before a tool filter renames it. */
  readonly name: string | undefined
  readonly type: 'tool' | 'resource' | 'prompt' | 'endpoint' | 'sse_endpoint'
  readonly backend_name: string
}

export interface AuditExtra {
  readonly duration_ms: number
  readonly transport: 'sse' | 'http'
  /** Absent when the client left before there was an answer. */
  readonly status_code: number | undefined
  readonly response_size_bytes: number
  /** The code of `docs/reference/errors.md` where the proxy answered instead of the backend. */
  readonly rejection: string | undefined
  readonly aborted: true | undefined
  readonly jsonrpc_error_code: number | undefined
  readonly jsonrpc_error_message: string | undefined
  readonly trace_id: string | undefined
  readonly span_id: string | undefined
  /** Of `audit_dropped`: events that were not written. */
  readonly dropped: number | undefined
  /** Of `authz_reload_failed`: why the policies were not replaced. Of a login or a workflow: why it failed. */
  readonly problems?: readonly string[] | undefined
  /** Of events of a composite tool: its run, and the step. */
  readonly workflow?: { readonly id: string; readonly step: string | undefined } | undefined
}

/** Events that no client caused. They are written whatever types are selected. */
export type SystemEventType = 'audit_dropped' | 'authz_reload_failed'

export interface AuditData {
  readonly request: unknown
  readonly response: unknown
}
