import type { MetricFamily, MetricSeries } from '../metrics.ts'

/*
 * The JSON encoding of OTLP 1.x: camelCase names, 64-bit integers as text, trace and span ids in hexadecimal.
 */

export type AttributeValue = string | number | boolean
export type Attributes = Readonly<Record<string, AttributeValue | undefined>>

/** Resource and scope of everything that one process sends. */
export interface OtlpSource {
  readonly resource: Attributes
  readonly scope: { readonly name: string; readonly version: string }
}

export interface SpanRecord {
  readonly traceId: string
  readonly spanId: string
  readonly parentSpanId: string | undefined
  readonly traceState: string | undefined
  readonly name: string
  readonly startMs: number
  readonly endMs: number
  readonly attributes: Attributes
  readonly isError: boolean
}

export interface LogRecord {
  readonly timeMs: number
  readonly severityText: string
  readonly body: string
  readonly attributes: Attributes
  readonly traceId: string | undefined
  readonly spanId: string | undefined
}

const KIND_SERVER = 2
const STATUS_ERROR = 2
const SEVERITY_INFO = 9
const CUMULATIVE = 2

export function tracesBody({ resource, scope }: OtlpSource, spans: readonly SpanRecord[]): string {
  const resourceSpans = [{ resource: { attributes: keyValues(resource) }, scopeSpans: [{ scope, spans: spans.map(spanOf) }] }]
  return JSON.stringify({ resourceSpans })
}

export function logsBody({ resource, scope }: OtlpSource, records: readonly LogRecord[]): string {
  const resourceLogs = [{ resource: { attributes: keyValues(resource) }, scopeLogs: [{ scope, logRecords: records.map(logOf) }] }]
  return JSON.stringify({ resourceLogs })
}

export function metricsBody({ resource, scope }: OtlpSource, families: readonly MetricFamily[], time: MetricsTime): string {
  const metrics = families.filter(({ series }) => series.length > 0).map((family) => metricOf(family, time))
  return JSON.stringify({ resourceMetrics: [{ resource: { attributes: keyValues(resource) }, scopeMetrics: [{ scope, metrics }] }] })
}

export interface MetricsTime {
  readonly startMs: number
  readonly nowMs: number
}

function spanOf(span: SpanRecord): object {
  const { traceId, spanId, parentSpanId, traceState, name, startMs, endMs, attributes, isError } = span
  return {
    traceId,
    spanId,
    parentSpanId,
    traceState,
    name,
    kind: KIND_SERVER,
    startTimeUnixNano: nanos(startMs),
    endTimeUnixNano: nanos(endMs),
    attributes: keyValues(attributes),
    status: isError ? { code: STATUS_ERROR } : {},
  }
}

function logOf({ timeMs, severityText, body, attributes, traceId, spanId }: LogRecord): object {
  const time = nanos(timeMs)
  return {
    timeUnixNano: time,
    observedTimeUnixNano: time,
    severityNumber: SEVERITY_INFO,
    severityText,
    body: { stringValue: body },
    attributes: keyValues(attributes),
    traceId,
    spanId,
  }
}

/** Names lose what Prometheus wants behind them: `_total` of counters, the unit of durations. */
function metricOf(family: MetricFamily, { startMs, nowMs }: MetricsTime): object {
  const { type, help: description, series, otelName } = family
  const times = { startTimeUnixNano: nanos(startMs), timeUnixNano: nanos(nowMs) }
  const isSeconds = /_seconds(_total)?$/.test(family.name)
  const head = {
    name: otelName ?? family.name.replace(/_total$/, '').replace(/_seconds$/, ''),
    description,
    unit: isSeconds ? 's' : family.name.endsWith('_bytes') ? 'By' : '1',
  }
  const points = series.map((one) => ({ attributes: pointAttributes(family, one), ...times }))
  if (type === 'histogram')
    return {
      ...head,
      histogram: { aggregationTemporality: CUMULATIVE, dataPoints: series.map((one, i) => histogramPoint(points[i], one)) },
    }
  const dataPoints = series.map(({ value }, i) => ({ ...points[i], asDouble: value }))
  if (type === 'gauge') return { ...head, gauge: { dataPoints } }
  return { ...head, sum: { aggregationTemporality: CUMULATIVE, isMonotonic: true, dataPoints } }
}

function histogramPoint(point: object | undefined, { value: sum, bounds = NONE, counts = NONE }: MetricSeries): object {
  const count = String(counts.reduce((total, one) => total + one, 0))
  return { ...point, count, sum, explicitBounds: [...bounds], bucketCounts: [...counts].map(String) }
}

const NONE = new Float64Array()

function pointAttributes({ labels, otelLabels = labels }: MetricFamily, { values }: MetricSeries): object[] {
  return values.map((value, i) => ({ key: otelLabels[i] ?? labels[i], value: { stringValue: value } }))
}

export function keyValues(attributes: Attributes): object[] {
  const pairs: object[] = []
  for (const key in attributes) {
    const value = attributes[key]
    if (value !== undefined) pairs.push({ key, value: anyValue(value) })
  }
  return pairs
}

function anyValue(value: AttributeValue): object {
  if (typeof value === 'string') return { stringValue: value }
  if (typeof value === 'boolean') return { boolValue: value }
  return Number.isSafeInteger(value) ? { intValue: String(value) } : { doubleValue: value }
}

/** Exact to the microsecond: a number of nanoseconds does not fit into a double. */
function nanos(ms: number): string {
  return `${Math.round(ms * 1_000)}000`
}
