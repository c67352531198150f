import type { Clock } from '@thv/kernel/clock'
import { errorMessage } from '@thv/kernel/errors'
import type { LineOutput } from '@thv/telemetry/lines/line-output'
import { LineWriter } from '@thv/telemetry/lines/line-writer'
import type { Log } from '@thv/telemetry/log'
import type { Metrics } from '@thv/telemetry/metrics'
import type { AuditSink } from './audit.ts'
import { systemEvent } from './system-event.ts'

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
    droppedLine: (dropped) => `${JSON.stringify(systemEvent('audit_dropped', { component, backend, clock }, { dropped }))}\n`,
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
