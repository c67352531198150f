import { randomUUID } from 'node:crypto'
import type { Clock } from '@thv/kernel/clock'
import type { AuditEvent, AuditExtra, SystemEventType } from './audit-event.ts'

export interface SystemEventSource {
  readonly component: string
  readonly backend: string
  readonly clock: Clock
}

/** An event that no client caused. */
export function systemEvent(
  type: SystemEventType,
  { component, backend, clock }: SystemEventSource,
  extra: Partial<Pick<AuditExtra, 'dropped' | 'problems'>>,
): AuditEvent {
  const time = new Date(clock.now()).toISOString()
  return {
    ...{ time, level: 'AUDIT', msg: 'audit_event', audit_id: randomUUID(), type, logged_at: time, outcome: 'error' },
    component,
    source: { type: 'local', value: type === 'audit_dropped' ? 'audit' : 'policies', extra: undefined },
    subjects: { user: 'system', user_id: undefined, issuer: undefined, client_name: undefined, client_version: undefined },
    delegation: undefined,
    target: { endpoint: '', http_method: '', method: undefined, name: undefined, type: 'endpoint', backend_name: backend },
    metadata: {
      extra: {
        ...{ duration_ms: 0, transport: 'http', status_code: undefined, response_size_bytes: 0, rejection: undefined, aborted: undefined },
        ...{ jsonrpc_error_code: undefined, jsonrpc_error_message: undefined, trace_id: undefined, span_id: undefined, dropped: undefined },
        ...extra,
      },
    },
    data: undefined,
  }
}
