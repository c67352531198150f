import { headerText } from '@thv/http/header-map'
import type { Clock } from '@thv/kernel/clock'
import { META, metaOf } from '@thv/mcp/envelope'
import { isObject } from '@thv/mcp/json-rpc'
import { spliceMember } from '@thv/mcp/json-splice'
import { METHODS } from '@thv/mcp/methods'
import type { ParsedMessage } from '@thv/mcp/parse-body'
import type { Metrics } from '@thv/telemetry/metrics'
import type { OtlpExporter } from '@thv/telemetry/otlp/otlp-exporter'
import {
  createTraceStarter,
  formatTraceparent,
  parseTraceparent,
  parseTracestate,
  type SamplerOptions,
  type TraceContext,
} from '@thv/telemetry/trace/trace-context'
import type { Middleware } from '../pipeline/middleware.ts'
import type { MessageContext } from '../pipeline/request-context.ts'
import { KnownNames } from './known-names.ts'
import { createSpanOf, type SpanOptions } from './span-of.ts'
import { createToolMetrics } from './tool-metrics.ts'

export interface TelemetryOptions extends SpanOptions, SamplerOptions {
  /** Spans are made and the trace is passed on. Otherwise only metrics are counted. */
  readonly traces: boolean
}

export interface TelemetryDeps {
  readonly clock: Clock
  readonly metrics: Metrics
  /** Absent where nothing is sent, as with Prometheus alone. */
  readonly exporter: OtlpExporter | undefined
}

/** Counts tool calls, follows W3C trace context, and sends a span for every sampled exchange. */
export function createTelemetry(options: TelemetryOptions, { clock, metrics, exporter }: TelemetryDeps): Middleware {
  const names = new KnownNames()
  const counted = createToolMetrics(metrics, names, options.server)
  const spanOf = createSpanOf(options, clock, names)
  const startTrace = createTraceStarter(options)
  const tracing: Partial<Middleware> = {
    open(context) {
      const { headers } = context.exchange
      const parent = parseTraceparent(headerText(headers['traceparent']))
      context.trace = startTrace(parent, parent && parseTracestate(headerText(headers['tracestate'])))
      return undefined
    },
    message(context) {
      const meta = context.received.kind === 'response' ? undefined : metaOf(context.received.message)
      const parent = meta && parseTraceparent(meta[META.traceparent])
      if (parent !== undefined) context.trace = startTrace(parent, parseTracestate(meta?.[META.tracestate]))
      if (context.trace !== undefined && (parent !== undefined || context.backend.transport === 'stdio'))
        passOnInMeta(context, context.trace)
      return undefined
    },
    headers({ trace }, set) {
      if (trace === undefined) return
      set['traceparent'] = formatTraceparent(trace)
      set['tracestate'] = trace.state
    },
  }

  return {
    name: 'telemetry',
    ...(options.traces && tracing),
    edits: [METHODS.toolsList, METHODS.promptsList],
    item(_context, item, method) {
      names.note(method, item)
      return item
    },
    end(context) {
      counted.finished(context, clock.monotonic() - context.exchange.startedAt)
      const { trace } = context
      if (trace?.sampled === true) exporter?.addSpan(spanOf(context, trace))
    },
    ...(exporter !== undefined && { close: (signal: AbortSignal) => exporter.close(signal) }),
  }
}

/** A pipe has no headers, and a client that uses `_meta` wants its server to find the trace there. */
function passOnInMeta(context: MessageContext, trace: TraceContext): void {
  const { outgoing } = context
  if (outgoing.kind === 'response' || outgoing.message.params === undefined) return
  const given = outgoing.message.params['_meta']
  if (given !== undefined && !isObject(given)) return // for the backend to reject
  const value = formatTraceparent(trace)
  const _meta = { ...given, [META.traceparent]: value }
  const message = { ...outgoing.message, params: { ...outgoing.message.params, _meta } }
  const text = spliceMember(outgoing.text, ['params', '_meta', META.traceparent], JSON.stringify(value))
  context.outgoing = { ...outgoing, message, text } as ParsedMessage
}
