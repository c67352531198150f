import type { OtlpExporter } from '@thv/telemetry/otlp/otlp-exporter'
import type { AuditSink } from './audit.ts'

/** Sends every event as an OTLP log record too. The exporter is closed by its owner. */
export function withOtlp(sink: AuditSink, exporter: Pick<OtlpExporter, 'addLog'>): AuditSink {
  return {
    write(event) {
      sink.write(event)
      const { trace_id: traceId, span_id: spanId } = event.metadata.extra
      exporter.addLog({
        timeMs: Date.parse(event.time),
        severityText: event.level,
        body: JSON.stringify(event),
        attributes: {
          'event.name': event.msg,
          'audit.type': event.type,
          'audit.outcome': event.outcome,
          'audit.component': event.component,
        },
        traceId,
        spanId,
      })
    },
    close: (signal) => sink.close(signal),
  }
}
