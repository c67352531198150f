import { randomUUID } from 'node:crypto'
import type { Clock } from '@thv/kernel/clock'
import { errorMessage } from '@thv/kernel/errors'
import type { LineOutput } from '@thv/telemetry/lines/line-output'
import { LineWriter } from '@thv/telemetry/lines/line-writer'
import type { Log } from '@thv/telemetry/log'
import type { Metrics } from '@thv/telemetry/metrics'
import type { AuditSink } from './audit.ts'
import type { AuditEvent } from './audit-event.ts'

export interface AuditLogOptions {
  readonly output: LineOutput
  readonly component: string
  readonly backend: string
  readonly clock: Clock
  readonly log: Log
  readonly metrics: Metrics
  readonly maxBytes?: number
}

/** Events as JSON lines. What does not fit is dropped, counted, and reported by an event `audit_dropped`. */
export function createAuditLog({ output, component, backend, clock, log, metrics, maxBytes }: AuditLogOptions): AuditSink {
  const events = metrics.counter({ name: 'toolhive_audit_events_total', help: 'Audit events.' }).with()
  const dropped = metrics
    .counter({ name: 'toolhive_audit_dropped_total', help: 'Audit events that were not written: the output was slow, full or gone.' })
    .with()
  const writer = new LineWriter({
    output,
    clock,
    ...(maxBytes !== undefined && { maxBytes }),
    droppedLine: (count) => `${JSON.stringify(droppedEvent(count, { component, backend, clock }))}\n`,
    onDropped: (count) => dropped.inc(count),
    onFailure: (error) => log.error('could not write audit events; retrying', { error: errorMessage(error) }),
  })
  return {
    write(event) {
      events.inc()
      writer.write(`${JSON.stringify(event)}\n`)
    },
    close: (signal) => writer.close(signal),
  }
}

function droppedEvent(
  dropped: number,
  { component, backend, clock }: Pick<AuditLogOptions, 'component' | 'backend' | 'clock'>,
): AuditEvent {
  const time = new Date(clock.now()).toISOString()
  return {
    ...{ time, level: 'AUDIT', msg: 'audit_event', audit_id: randomUUID(), type: 'audit_dropped', logged_at: time, outcome: 'error' },
    component,
    source: { type: 'local', value: 'audit', extra: undefined },
    subjects: { user: 'system', user_id: undefined, issuer: undefined, client_name: undefined, client_version: undefined },
    delegation: undefined,
    target: { endpoint: '', http_method: '', method: undefined, name: undefined, type: 'endpoint', backend_name: backend },
    metadata: {
      extra: {
        ...{ duration_ms: 0, transport: 'http', status_code: undefined, response_size_bytes: 0, rejection: undefined, aborted: undefined },
        ...{ jsonrpc_error_code: undefined, jsonrpc_error_message: undefined, trace_id: undefined, span_id: undefined, dropped },
      },
    },
    data: undefined,
  }
}
