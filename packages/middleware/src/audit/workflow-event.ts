import { randomUUID } from 'node:crypto'
import type { Identity } from '@thv/auth/incoming/authenticator'
import type { WorkflowEventType } from '@thv/runconfig/audit-config'
import { scrub, withoutLinks } from '@thv/telemetry/redact'
import type { AuditEvent, AuditOutcome } from './audit-event.ts'
import { createSafeText } from './safe-text.ts'
import type { SystemEventSource } from './system-event.ts'

/** An event in a run of a composite tool. */
export interface WorkflowRecord {
  readonly type: WorkflowEventType
  /** As clients call it. */
  readonly tool: string
  readonly id: string
  readonly step?: string | undefined
  readonly durationMs?: number | undefined
  readonly error?: string | undefined
  /** Of the caller. */
  readonly identity: Identity | undefined
}

/** Brings events of composite tools to the audit log, which is made before there are any. */
export class WorkflowFeed {
  #listener: ((record: WorkflowRecord) => void) | undefined

  observe(listener: (record: WorkflowRecord) => void): void {
    this.#listener = listener
  }

  report(record: WorkflowRecord): void {
    this.#listener?.(record)
  }
}

const OUTCOMES: Partial<Record<WorkflowEventType, AuditOutcome>> = {
  workflow_failed: 'failure',
  workflow_timed_out: 'error',
  workflow_step_failed: 'failure',
}

const safe = createSafeText(512)

/** An event of a composite tool as a line of the audit log. */
export function workflowEvent(record: WorkflowRecord, { component, backend, clock }: SystemEventSource): AuditEvent {
  const { type, tool, id, step, durationMs = 0, error, identity } = record
  const time = new Date(clock.now()).toISOString()
  return {
    ...{ time, level: 'AUDIT', msg: 'audit_event', audit_id: randomUUID(), type, logged_at: time },
    outcome: OUTCOMES[type] ?? 'success',
    component,
    source: { type: 'local', value: 'workflow', extra: undefined },
    subjects: {
      user: safe(identity === undefined ? 'anonymous' : (identity.displayName ?? identity.subject)),
      user_id: identity && safe(identity.subject),
      issuer: identity && safe(identity.issuer),
      ...{ client_name: undefined, client_version: undefined },
    },
    delegation: undefined,
    target: { endpoint: '', http_method: '', method: undefined, name: safe(tool), type: 'tool', backend_name: backend },
    metadata: {
      extra: {
        ...{ transport: 'http', status_code: undefined, response_size_bytes: 0, rejection: undefined, aborted: undefined },
        ...{ jsonrpc_error_code: undefined, jsonrpc_error_message: undefined, trace_id: undefined, span_id: undefined, dropped: undefined },
        duration_ms: Math.round(durationMs * 1_000) / 1_000,
        workflow: { id, step },
        ...(error !== undefined && { problems: [scrub(withoutLinks(error.slice(0, 256)))] }),
      },
    },
    data: undefined,
  }
}
