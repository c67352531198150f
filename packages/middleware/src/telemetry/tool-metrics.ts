import { METHODS } from '@thv/mcp/methods'
import { DURATION_BUCKETS, type Histogram, type Metrics } from '@thv/telemetry/metrics'
import type { RequestContext } from '../pipeline/request-context.ts'
import type { KnownNames } from './known-names.ts'
import { errorTypeOf, methodOf } from './span-of.ts'

export interface ToolMetrics {
  finished(context: RequestContext, durationMs: number): void
}

const MAX_KNOWN = 1_000

/** Tool calls by name, and the durations of MCP operations as the semantic conventions name them. */
export function createToolMetrics(metrics: Metrics, names: KnownNames, server: string): ToolMetrics {
  const calls = metrics.counter({
    name: 'toolhive_mcp_tool_calls_total',
    help: 'Tool calls. Tools that no list through this proxy has named are "other".',
    labels: ['server', 'tool', 'status'],
  })
  const durations = metrics.histogram({
    name: 'mcp_server_operation_duration_seconds',
    help: 'Duration of MCP requests.',
    labels: ['mcp_method_name', 'error_type'],
    otelName: 'mcp.server.operation.duration',
    otelLabels: ['mcp.method.name', 'error.type'],
    buckets: DURATION_BUCKETS,
  })
  /** By method and error, so that a label set is looked up once. */
  const known = new Map<string, Histogram>()
  function durationOf(method: string, error: string): Histogram {
    const key = `${method} ${error}`
    const found = known.get(key)
    if (found !== undefined) return found
    const histogram = durations.with(method, error)
    if (known.size < MAX_KNOWN) known.set(key, histogram)
    return histogram
  }

  return {
    finished(context, durationMs) {
      const method = methodOf(context)
      if (method === undefined) return
      const error = errorTypeOf(context)
      durationOf(method, error ?? '').observe(durationMs / 1_000)
      if (method === METHODS.toolsCall) calls.with(server, names.of(context) ?? '', error === undefined ? 'success' : 'error').inc()
    },
  }
}
