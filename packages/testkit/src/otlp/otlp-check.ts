/* Checks of the JSON encoding of OTLP 1.x: members that it does not know and values of a wrong kind are errors. */

export type Attributes = Readonly<Record<string, string | number | boolean>>

export interface ReceivedSpan {
  readonly traceId: string
  readonly spanId: string
  readonly parentSpanId: string | undefined
  readonly name: string
  readonly attributes: Attributes
  readonly resource: Attributes
}

export interface ReceivedMetric {
  readonly name: string
  readonly kind: 'sum' | 'gauge' | 'histogram'
  readonly points: readonly { readonly attributes: Attributes; readonly value: number }[]
}

export interface ReceivedLog {
  readonly body: string
  readonly traceId: string | undefined
  readonly attributes: Attributes
}

type Members = Record<string, unknown>

export function checkTraces(body: unknown): ReceivedSpan[] {
  return scopesOf(body, ['resourceSpans', 'scopeSpans', 'spans']).flatMap(({ resource, items }) =>
    items.map((item) => {
      const span = members(item, [
        ...['traceId', 'spanId', 'parentSpanId', 'traceState', 'name', 'kind', 'startTimeUnixNano', 'endTimeUnixNano'],
        ...['attributes', 'status'],
      ])
      demand(Number.isInteger(span['kind']), 'kind is an integer')
      demand(BigInt(time(span['startTimeUnixNano'])) <= BigInt(time(span['endTimeUnixNano'])), 'a span ends after it starts')
      members(span['status'], ['code', 'message'])
      return {
        traceId: hex(span['traceId'], 32),
        spanId: hex(span['spanId'], 16),
        parentSpanId: span['parentSpanId'] === undefined ? undefined : hex(span['parentSpanId'], 16),
        name: text(span['name']),
        attributes: attributesOf(span['attributes']),
        resource,
      }
    }),
  )
}

export function checkLogs(body: unknown): ReceivedLog[] {
  return scopesOf(body, ['resourceLogs', 'scopeLogs', 'logRecords']).flatMap(({ items }) =>
    items.map((item) => {
      const record = members(item, [
        ...['timeUnixNano', 'observedTimeUnixNano', 'severityNumber', 'severityText', 'body', 'attributes', 'traceId', 'spanId'],
      ])
      time(record['timeUnixNano'])
      const traceId = record['traceId'] === undefined ? undefined : hex(record['traceId'], 32)
      return {
        body: text(members(record['body'], ['stringValue'])['stringValue']),
        traceId,
        attributes: attributesOf(record['attributes']),
      }
    }),
  )
}

export function checkMetrics(body: unknown): ReceivedMetric[] {
  return scopesOf(body, ['resourceMetrics', 'scopeMetrics', 'metrics']).flatMap(({ items }) => {
    const names = items.map((item) => text(members(item, ['name', 'description', 'unit', 'sum', 'gauge', 'histogram'])['name']))
    demand(new Set(names).size === names.length, 'a metric comes once')
    return items.map(metricOf)
  })
}

function metricOf(item: unknown): ReceivedMetric {
  const metric = members(item, ['name', 'description', 'unit', 'sum', 'gauge', 'histogram'])
  const kind = (['sum', 'gauge', 'histogram'] as const).find((one) => metric[one] !== undefined)
  if (kind === undefined) throw new TypeError('a metric has data')
  const data = members(metric[kind], ['aggregationTemporality', 'isMonotonic', 'dataPoints'])
  demand(kind === 'gauge' || data['aggregationTemporality'] === 2, 'sums and histograms are cumulative')
  const points = list(data['dataPoints']).map((point) => {
    const names = ['attributes', 'startTimeUnixNano', 'timeUnixNano', 'asDouble', 'count', 'sum', 'explicitBounds', 'bucketCounts']
    const one = members(point, names)
    time(one['timeUnixNano'])
    if (kind === 'histogram')
      demand(list(one['bucketCounts']).length === list(one['explicitBounds']).length + 1, 'one bucket more than bounds')
    return { attributes: attributesOf(one['attributes']), value: number(kind === 'histogram' ? Number(one['count']) : one['asDouble']) }
  })
  return { name: text(metric['name']), kind, points }
}

function scopesOf(body: unknown, [outer, inner, leaf]: readonly [string, string, string]): { resource: Attributes; items: unknown[] }[] {
  return list(members(body, [outer])[outer]).flatMap((group) => {
    const { resource, [inner]: scopes } = members(group, ['resource', inner])
    const attributes = attributesOf(members(resource, ['attributes'])['attributes'])
    demand(typeof attributes['service.name'] === 'string', 'a resource has a service.name')
    return list(scopes).map((scope) => {
      const { scope: about, [leaf]: items } = members(scope, ['scope', leaf])
      members(about, ['name', 'version'])
      return { resource: attributes, items: list(items) }
    })
  })
}

function attributesOf(value: unknown): Attributes {
  const pairs = list(value).map((pair) => {
    const { key, value: any } = members(pair, ['key', 'value'])
    const { stringValue, boolValue, intValue, doubleValue } = members(any, ['stringValue', 'boolValue', 'intValue', 'doubleValue'])
    if (intValue !== undefined) demand(typeof intValue === 'string' && /^-?\d+$/.test(intValue), 'a 64-bit integer is a text of digits')
    return [text(key), stringValue ?? boolValue ?? doubleValue ?? Number(intValue)] as [string, string | number | boolean]
  })
  demand(new Set(pairs.map(([key]) => key)).size === pairs.length, 'an attribute comes once')
  return Object.fromEntries(pairs)
}

function members(value: unknown, known: readonly string[]): Members {
  demand(typeof value === 'object' && value !== null && !Array.isArray(value), `an object with ${known.join(', ')}`)
  const object = value as Members
  for (const name of Object.keys(object)) demand(known.includes(name), `no member ${name}`)
  return object
}

function list(value: unknown): unknown[] {
  if (!Array.isArray(value)) throw new TypeError('a list is expected')
  return value
}

function text(value: unknown): string {
  if (typeof value !== 'string') throw new TypeError('a text is expected')
  return value
}

function number(value: unknown): number {
  if (typeof value !== 'number' || !Number.isFinite(value)) throw new TypeError('a number is expected')
  return value
}

function hex(value: unknown, length: number): string {
  demand(typeof value === 'string' && value.length === length && /^[0-9a-f]+$/.test(value), `${length} hexadecimal digits`)
  return String(value)
}

function time(value: unknown): string {
  demand(typeof value === 'string' && /^[1-9]\d{15,18}$/.test(value), 'nanoseconds since 1970 as a text')
  return String(value)
}

function demand(holds: boolean, rule: string): void {
  if (!holds) throw new TypeError(`OTLP: ${rule}`)
}
