import { escapeLabelValue, histogramLines, metricHeader, sampleLine } from './prometheus-text.ts'

/** A set of metrics that is read as one page. */
export interface Metrics {
  counter(options: MetricOptions): Family<Counter>
  gauge(options: MetricOptions): Family<Gauge>
  histogram(options: HistogramOptions): Family<Histogram>
  /** Called before each page: for values that are read rather than counted. What it throws is counted, not passed on. */
  onCollect(fn: () => void): void
  /** The Prometheus text format, version 0.0.4. */
  render(): string
  /** The same values as data. */
  collect(): MetricFamily[]
}

export interface MetricFamily {
  readonly name: string
  readonly help: string
  readonly type: MetricType
  readonly labels: readonly string[]
  readonly otelName?: string | undefined
  readonly otelLabels?: readonly string[] | undefined
  readonly series: readonly MetricSeries[]
}

export type MetricType = 'counter' | 'gauge' | 'histogram'

export interface MetricSeries {
  /** Of the labels. */
  readonly values: readonly string[]
  /** The sum of a histogram. */
  readonly value: number
  /** Of a histogram; counts are not cumulative, the last is for what is above all bounds. */
  readonly bounds?: Float64Array
  readonly counts?: Float64Array
}

export interface MetricOptions {
  readonly name: string
  readonly help: string
  /** Names of the labels, in the order in which `with` takes their values. */
  readonly labels?: readonly string[]
  /** Label sets beyond this many are counted together under the value "other": a client must not be able to fill the memory. */
  readonly maxSeries?: number
  /** Name and labels over OTLP, where they differ from those of Prometheus by more than its suffixes. */
  readonly otelName?: string
  readonly otelLabels?: readonly string[]
}

export interface HistogramOptions extends MetricOptions {
  /** Upper bounds, rising; +Inf is added. */
  readonly buckets: readonly number[]
}

/** One metric with all its label sets. Bind a label set once and keep it: then counting allocates nothing. */
export interface Family<T> {
  with(...values: string[]): T
}

export interface Counter {
  /** By 1 unless told otherwise; never down. */
  inc(by?: number): void
  readonly value: number
}

export interface Gauge {
  set(value: number): void
  inc(by?: number): void
  dec(by?: number): void
  readonly value: number
}

export interface Histogram {
  observe(value: number): void
  readonly count: number
  readonly sum: number
}

/** Seconds; from a quick local call to a long-running tool. */
export const DURATION_BUCKETS: readonly number[] = [0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10, 30, 60, 120, 300]

export const CONTENT_TYPE = 'text/plain; version=0.0.4; charset=utf-8'

const DEFAULT_MAX_SERIES = 1_000
const METRIC_NAME = /^[a-zA-Z_:][a-zA-Z0-9_:]*$/
const LABEL_NAME = /^(?!__)[a-zA-Z_][a-zA-Z0-9_]*$/

/** Wrong names and a name twice are mistakes of the programmer: RangeError. */
export function createMetrics(): Metrics {
  const families = new Map<string, SeriesFamily<Series>>()
  const collectors: (() => void)[] = []
  const taken = new Set<string>()
  const overflow = register<CounterSeries>(
    { name: 'thv_metrics_overflow_total', help: 'Uses of a label set that was counted under "other".', labels: ['metric'] },
    'counter',
    () => new CounterSeries(),
  )
  const failures = register<CounterSeries>(
    { name: 'thv_metrics_collect_errors_total', help: 'Collectors of values that failed.' },
    'counter',
    () => new CounterSeries(),
  )

  function register<T extends Series>(options: MetricOptions, type: MetricType, make: () => T): SeriesFamily<T> {
    const { name, labels = [] } = options
    if (!METRIC_NAME.test(name)) throw new RangeError(`"${name}" is not a metric name`)
    for (const label of labels)
      if (!LABEL_NAME.test(label) || (type === 'histogram' && label === 'le'))
        throw new RangeError(`"${label}" is not a label name (${name})`)
    if (new Set(labels).size < labels.length) throw new RangeError(`${name} has a label twice`)
    const names = type === 'histogram' ? [name, `${name}_bucket`, `${name}_sum`, `${name}_count`] : [name]
    for (const one of names) if (taken.has(one)) throw new RangeError(`there is a metric ${one} already`)
    for (const one of names) taken.add(one)
    const family = new SeriesFamily<T>(options, { type, make, onOverflow: () => overflow.with(name).inc() })
    families.set(name, family)
    return family
  }

  return {
    counter: (options) => register(options, 'counter', () => new CounterSeries()),
    gauge: (options) => register(options, 'gauge', () => new GaugeSeries()),
    histogram(options) {
      const bounds = boundsOf(options)
      return register(options, 'histogram', () => new HistogramSeries(bounds))
    },
    onCollect: (fn) => void collectors.push(fn),
    render() {
      runCollectors()
      return [...families.values()].map((family) => family.render()).join('')
    },
    collect() {
      runCollectors()
      return [...families.values()].map((family) => family.data())
    },
  }

  function runCollectors(): void {
    for (const collect of collectors) {
      try {
        collect()
      } catch {
        failures.with().inc()
      }
    }
  }
}

interface Series {
  render(name: string, labels: string): string
  data(values: readonly string[]): MetricSeries
}

interface FamilyKind<T> {
  readonly type: MetricType
  readonly make: () => T
  readonly onOverflow: () => void
}

class SeriesFamily<T extends Series> implements Family<T> {
  readonly #name: string
  readonly #header: string
  readonly #labels: readonly string[]
  readonly #maxSeries: number
  readonly #kind: FamilyKind<T>
  readonly #options: MetricOptions
  readonly #series = new Map<string, { readonly labels: string; readonly values: readonly string[]; readonly series: T }>()

  constructor(options: MetricOptions, kind: FamilyKind<T>) {
    const { name, help, labels = [], maxSeries = DEFAULT_MAX_SERIES } = options
    this.#options = options
    this.#name = name
    this.#header = metricHeader(name, help, kind.type)
    this.#labels = labels
    this.#maxSeries = maxSeries
    this.#kind = kind
    if (labels.length === 0) this.with() // what has no labels is 0 from the start, not absent
  }

  with(...values: string[]): T {
    if (values.length !== this.#labels.length) throw new RangeError(`${this.#name} has ${this.#labels.length} labels, not ${values.length}`)
    const cut = values.map(cutLabelValue)
    const key = JSON.stringify(cut)
    const known = this.#series.get(key)
    if (known) return known.series
    if (this.#series.size < this.#maxSeries || this.#labels.length === 0) return this.#add(key, cut)
    this.#kind.onOverflow()
    const other = this.#labels.map(() => 'other')
    const otherKey = JSON.stringify(other)
    return this.#series.get(otherKey)?.series ?? this.#add(otherKey, other)
  }

  render(): string {
    let text = this.#header
    for (const { labels, series } of this.#series.values()) text += series.render(this.#name, labels)
    return text
  }

  data(): MetricFamily {
    const { name, help, otelName, otelLabels } = this.#options
    const series = [...this.#series.values()].map(({ values, series: one }) => one.data(values))
    return { name, help, type: this.#kind.type, labels: this.#labels, otelName, otelLabels, series }
  }

  #add(key: string, values: readonly string[]): T {
    const series = this.#kind.make()
    const labels = values.map((value, i) => `${this.#labels[i]}="${escapeLabelValue(value)}"`).join(',')
    this.#series.set(key, { labels, values, series })
    return series
  }
}

class CounterSeries implements Counter, Series {
  value = 0

  inc(by = 1): void {
    if (!(by >= 0)) throw new RangeError(`a counter goes up, not by ${by}`)
    this.value += by
  }

  render(name: string, labels: string): string {
    return sampleLine(name, labels, this.value)
  }

  data(values: readonly string[]): MetricSeries {
    return { values, value: this.value }
  }
}

class GaugeSeries implements Gauge, Series {
  value = 0

  set(value: number): void {
    this.value = value
  }

  inc(by = 1): void {
    this.value += by
  }

  dec(by = 1): void {
    this.value -= by
  }

  render(name: string, labels: string): string {
    return sampleLine(name, labels, this.value)
  }

  data(values: readonly string[]): MetricSeries {
    return { values, value: this.value }
  }
}

class HistogramSeries implements Histogram, Series {
  count = 0
  sum = 0
  readonly #bounds: Float64Array
  /** Not cumulative; the last is for what is above all bounds. */
  readonly #counts: Float64Array

  constructor(bounds: Float64Array) {
    this.#bounds = bounds
    this.#counts = new Float64Array(bounds.length + 1)
  }

  observe(value: number): void {
    if (Number.isNaN(value)) throw new RangeError('NaN cannot be observed')
    const bounds = this.#bounds
    let i = 0
    while (i < bounds.length && value > (bounds[i] as number)) i++
    this.#counts[i] = (this.#counts[i] as number) + 1
    this.count++
    this.sum += value
  }

  render(name: string, labels: string): string {
    return histogramLines(name, labels, { bounds: this.#bounds, counts: this.#counts, sum: this.sum })
  }

  data(values: readonly string[]): MetricSeries {
    return { values, value: this.sum, bounds: this.#bounds, counts: this.#counts.slice() }
  }
}

function boundsOf({ name, buckets }: HistogramOptions): Float64Array {
  const bounds = Float64Array.from(buckets.filter((bound) => bound !== Infinity))
  if (bounds.some((bound, i) => Number.isNaN(bound) || (i > 0 && bound <= (bounds[i - 1] as number))))
    throw new RangeError(`the buckets of ${name} must rise`)
  return bounds
}

const MAX_VALUE_BYTES = 128

/** Longer values would be unusable in queries and costly in memory. */
function cutLabelValue(value: string): string {
  if (value.length * 3 <= MAX_VALUE_BYTES || Buffer.byteLength(value) <= MAX_VALUE_BYTES) return value.toWellFormed()
  const bytes = Buffer.from(value).subarray(0, MAX_VALUE_BYTES - 3)
  return `${bytes.toString().replace(/\ufffd+$/, '')}...`
}
