import { describe, expect, it } from 'vitest'
import { CONTENT_TYPE, createMetrics, DURATION_BUCKETS, type Metrics } from './metrics.ts'
import { addProcessMetrics } from './process-metrics.ts'

/** Without the registry's own two. */
const page = (metrics: Metrics) =>
  metrics
    .render()
    .split('\n')
    .filter((line) => !line.includes('thv_metrics_'))
    .join('\n')

describe('metrics page', () => {
  it('is the text format, character by character', () => {
    const metrics = createMetrics()
    const requests = metrics.counter({ name: 'requests_total', help: 'All requests.', labels: ['method', 'status'] })
    const open = metrics.gauge({ name: 'connections', help: 'Open connections.' }).with()
    const took = metrics.histogram({ name: 'took_seconds', help: 'Duration.', labels: ['method'], buckets: [0.1, 1] }).with('GET')
    requests.with('GET', '200').inc()
    requests.with('GET', '200').inc(2)
    requests.with('POST', '500').inc(0.5)
    open.inc(3)
    open.dec()
    for (const seconds of [0.05, 0.1, 0.100001, 5]) took.observe(seconds)
    expect(page(metrics)).toBe(`# HELP requests_total All requests.
# TYPE requests_total counter
requests_total{method="GET",status="200"} 3
requests_total{method="POST",status="500"} 0.5
# HELP connections Open connections.
# TYPE connections gauge
connections 2
# HELP took_seconds Duration.
# TYPE took_seconds histogram
took_seconds_bucket{method="GET",le="0.1"} 2
took_seconds_bucket{method="GET",le="1"} 3
took_seconds_bucket{method="GET",le="+Inf"} 4
took_seconds_sum{method="GET"} 5.250001
took_seconds_count{method="GET"} 4
`)
    expect(CONTENT_TYPE).toBe('text/plain; version=0.0.4; charset=utf-8')
  })

  it('shows a metric without labels from the start, and one with labels only with its header', () => {
    const metrics = createMetrics()
    metrics.counter({ name: 'a_total', help: 'a' })
    metrics.counter({ name: 'b_total', help: 'b', labels: ['x'] })
    metrics.histogram({ name: 'c', help: 'c', buckets: [] })
    expect(page(metrics)).toBe(
      '# HELP a_total a\n# TYPE a_total counter\na_total 0\n# HELP b_total b\n# TYPE b_total counter\n' +
        '# HELP c c\n# TYPE c histogram\nc_bucket{le="+Inf"} 0\nc_sum 0\nc_count 0\n',
    )
  })

  it('escapes help texts and label values', () => {
    const metrics = createMetrics()
    metrics
      .gauge({ name: 'x', help: 'back\\slash\nnew "line"', labels: ['l'] })
      .with('a\\b"c\nd')
      .set(1)
    expect(page(metrics)).toBe('# HELP x back\\\\slash\\nnew "line"\n# TYPE x gauge\nx{l="a\\\\b\\"c\\nd"} 1\n')
  })

  it.each([
    [Infinity, '+Inf'],
    [-Infinity, '-Inf'],
    [Number.NaN, 'NaN'],
    [1e21, '1e+21'],
    [-0.5, '-0.5'],
  ])('writes %d as %s', (value, text) => {
    const metrics = createMetrics()
    metrics.gauge({ name: 'x', help: 'x' }).with().set(value)
    expect(page(metrics)).toContain(`\nx ${text}\n`)
  })

  it('cuts long label values, not in the middle of a character', () => {
    const metrics = createMetrics()
    const family = metrics.counter({ name: 'x_total', help: 'x', labels: ['l'] })
    family.with('a'.repeat(128)).inc()
    family.with('b'.repeat(129)).inc()
    family.with('é'.repeat(100)).inc()
    const values = [...page(metrics).matchAll(/l="(.*)"/g)].map((match) => match[1] ?? '')
    expect(values).toEqual(['a'.repeat(128), `${'b'.repeat(125)}...`, `${'é'.repeat(62)}...`])
    for (const value of values) expect(Buffer.byteLength(value)).toBeLessThanOrEqual(128)
  })
})

describe('label sets', () => {
  it('are one series however often they are bound', () => {
    const family = createMetrics().counter({ name: 'x_total', help: 'x', labels: ['a', 'b'] })
    expect(family.with('1', '2')).toBe(family.with('1', '2'))
    expect(family.with('1,2', '')).not.toBe(family.with('1', ',2'))
  })

  it('are bounded: what is over is counted together, and that is counted', () => {
    const metrics = createMetrics()
    const family = metrics.counter({ name: 'x_total', help: 'x', labels: ['a', 'b'], maxSeries: 2 })
    for (let i = 0; i < 100; i++) family.with(String(i), 'z').inc()
    const text = metrics.render()
    expect(text.match(/^x_total\{.*$/gm)).toEqual(['x_total{a="0",b="z"} 1', 'x_total{a="1",b="z"} 1', 'x_total{a="other",b="other"} 98'])
    expect(text).toContain('thv_metrics_overflow_total{metric="x_total"} 98')
    family.with('0', 'z').inc()
    expect(family.with('0', 'z').value).toBe(2)
  })

  it('must be complete', () => {
    const family = createMetrics().counter({ name: 'x_total', help: 'x', labels: ['a'] })
    expect(() => family.with()).toThrow(RangeError)
    expect(() => family.with('1', '2')).toThrow(RangeError)
  })
})

describe('mistakes', () => {
  it.each([
    ['a name', (metrics: Metrics) => metrics.counter({ name: 'a-b', help: '' })],
    ['an empty name', (metrics: Metrics) => metrics.counter({ name: '', help: '' })],
    ['a label name', (metrics: Metrics) => metrics.counter({ name: 'a', help: '', labels: ['x-y'] })],
    ['a reserved label name', (metrics: Metrics) => metrics.counter({ name: 'a', help: '', labels: ['__x'] })],
    ['a label twice', (metrics: Metrics) => metrics.counter({ name: 'a', help: '', labels: ['x', 'x'] })],
    ['le on a histogram', (metrics: Metrics) => metrics.histogram({ name: 'a', help: '', labels: ['le'], buckets: [1] })],
    ['buckets that fall', (metrics: Metrics) => metrics.histogram({ name: 'a', help: '', buckets: [2, 1] })],
    ['buckets twice', (metrics: Metrics) => metrics.histogram({ name: 'a', help: '', buckets: [1, 1] })],
    ['a name that exists', (metrics: Metrics) => [metrics.counter({ name: 'a', help: '' }), metrics.gauge({ name: 'a', help: '' })]],
    [
      'a name that a histogram uses',
      (metrics: Metrics) => [metrics.histogram({ name: 'a', help: '', buckets: [] }), metrics.gauge({ name: 'a_sum', help: '' })],
    ],
    ['a counter that falls', (metrics: Metrics) => metrics.counter({ name: 'a', help: '' }).with().inc(-1)],
    ['NaN on a counter', (metrics: Metrics) => metrics.counter({ name: 'a', help: '' }).with().inc(Number.NaN)],
    [
      'NaN in a histogram',
      (metrics: Metrics) =>
        metrics
          .histogram({ name: 'a', help: '', buckets: [1] })
          .with()
          .observe(Number.NaN),
    ],
  ])('throws on %s', (_name, mistake) => {
    expect(() => mistake(createMetrics())).toThrow(RangeError)
  })
})

describe('collectors', () => {
  it('run for each page, and one that fails does not spoil it', () => {
    const metrics = createMetrics()
    const gauge = metrics.gauge({ name: 'x', help: 'x' }).with()
    metrics.onCollect(() => {
      throw new Error('no')
    })
    metrics.onCollect(() => gauge.inc())
    expect(metrics.render()).toContain('\nx 1\n')
    expect(metrics.render()).toContain('\nx 2\n')
    expect(metrics.render()).toContain('thv_metrics_collect_errors_total 3')
  })

  it('pins the buckets for durations', () => {
    expect(DURATION_BUCKETS).toEqual([0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10, 30, 60, 120, 300])
  })
})

describe('process metrics', () => {
  it('tell of memory, CPU and the event loop', async () => {
    const metrics = createMetrics()
    using _measuring = addProcessMetrics(metrics)
    await new Promise((resolve) => setTimeout(resolve, 60))
    const busyUntil = performance.now() + 120
    while (performance.now() < busyUntil);
    await new Promise((resolve) => setTimeout(resolve, 60))
    const text = metrics.render()
    const value = (name: string) => Number(new RegExp(`^${name.replace(/[{}"]/g, '\\$&')} (.*)$`, 'm').exec(text)?.[1])
    expect(value('process_resident_memory_bytes')).toBeGreaterThan(1e6)
    expect(value('nodejs_heap_used_bytes')).toBeGreaterThan(1e5)
    expect(value('process_cpu_seconds_total')).toBeGreaterThan(0)
    expect(value('process_start_time_seconds')).toBeGreaterThan(1.7e9)
    expect(value('nodejs_eventloop_delay_seconds{quantile="1"}')).toBeGreaterThan(0.05)
    expect(value('nodejs_eventloop_delay_seconds{quantile="0.5"}')).toBeLessThanOrEqual(
      value('nodejs_eventloop_delay_seconds{quantile="1"}'),
    )
    expect(value('nodejs_eventloop_utilization')).toBeGreaterThanOrEqual(0)
    const again = metrics.render()
    expect(Number(/process_cpu_seconds_total (.*)/.exec(again.replaceAll(/# .*\n/g, ''))?.[1])).toBeGreaterThanOrEqual(
      value('process_cpu_seconds_total'),
    )
  })
})
