import { METHODS, NOTIFICATIONS } from '@thv/mcp/methods'
import { type Counter, DURATION_BUCKETS, type Histogram, type Metrics } from '@thv/telemetry/metrics'

export interface RequestMetricsOptions {
  readonly metrics: Metrics
  readonly server: string
  readonly transport: string
}

export interface Finished {
  readonly httpMethod: string
  readonly status: number
  /** As sent by the client; unknown methods are counted together. */
  readonly mcpMethod: string | undefined
  readonly durationMs: number
}

/** Counts requests under the names of ToolHive (Go), for its dashboards. Ids, cursors and URIs of clients do not become labels. */
export interface RequestMetrics {
  finished(request: Finished): void
}

interface Series {
  readonly counter: Counter
  readonly histogram: Histogram
}

const HTTP_METHODS: ReadonlySet<string> = new Set(['POST', 'GET', 'DELETE'])
const KNOWN: ReadonlySet<string> = new Set([...Object.values(METHODS), ...Object.values(NOTIFICATIONS)])

export function createRequestMetrics({ metrics, server, transport }: RequestMetricsOptions): RequestMetrics {
  const labels = ['method', 'status_code', 'status', 'mcp_method', 'server', 'transport']
  const requests = metrics.counter({ name: 'toolhive_mcp_requests_total', help: 'Requests to the MCP endpoints.', labels })
  const duration = metrics.histogram({
    name: 'toolhive_mcp_request_duration_seconds',
    help: 'Time from the request to the end of its answer.',
    labels: ['mcp_method', 'server', 'transport'],
    buckets: DURATION_BUCKETS,
  })
  /** Those of successful POSTs, which nearly all requests are; by MCP method. */
  const usual = new Map<string, Series>()

  function seriesOf(httpMethod: string, mcpMethod: string, status: number): Series {
    return {
      counter: requests.with(httpMethod, String(status), status < 400 ? 'success' : 'error', mcpMethod, server, transport),
      histogram: duration.with(mcpMethod, server, transport),
    }
  }

  function usualSeries(mcpMethod: string): Series {
    const known = usual.get(mcpMethod)
    if (known !== undefined) return known
    const series = seriesOf('POST', mcpMethod, 200)
    usual.set(mcpMethod, series)
    return series
  }

  return {
    finished({ httpMethod, status, mcpMethod = '', durationMs }) {
      const method = mcpMethod === '' || KNOWN.has(mcpMethod) ? mcpMethod : 'other'
      const isUsual = status === 200 && httpMethod === 'POST'
      const series = isUsual ? usualSeries(method) : seriesOf(HTTP_METHODS.has(httpMethod) ? httpMethod : 'other', method, status)
      series.counter.inc()
      series.histogram.observe(durationMs / 1_000)
    },
  }
}
