import { type Clock, systemClock, type Timer } from '@thv/kernel/clock'
import type { Log } from '../log.ts'
import type { Metrics } from '../metrics.ts'
import { BatchQueue, type DropReason, type SendResult } from './batch-queue.ts'
import { type LogRecord, logsBody, metricsBody, type OtlpSource, type SpanRecord, tracesBody } from './otlp-json.ts'

export type OtlpSignal = 'traces' | 'metrics' | 'logs'

/** POSTs one body to `/v1/SIGNAL` of the collector. Rejects when there is no answer. */
export type OtlpSend = (signal: OtlpSignal, body: string) => Promise<SendResult>

export interface OtlpExporterOptions {
  readonly source: OtlpSource
  readonly send: OtlpSend
  readonly log: Log
  readonly metrics: Metrics
  /** Also send the metrics, in this interval. Absent: only spans and logs. */
  readonly metricsIntervalMs?: number | undefined
  readonly clock?: Clock
  readonly maxItems?: number
  readonly batchItems?: number
  readonly intervalMs?: number
}

const CLOSE_MS = 5_000

/**
 * Sends spans, logs and metrics over OTLP/HTTP with JSON (ADR 0015). Queues are bounded and losses are counted; a collector that is
 * slow, full or gone delays nothing.
 */
export class OtlpExporter {
  readonly #options: OtlpExporterOptions
  readonly #clock: Clock
  readonly #spans: BatchQueue<SpanRecord>
  readonly #logs: BatchQueue<LogRecord>
  readonly #pages: BatchQueue<string>
  readonly #startMs: number
  #timer: Timer | undefined

  constructor(options: OtlpExporterOptions) {
    const { source, send, log, metrics, clock = systemClock, metricsIntervalMs } = options
    this.#options = options
    this.#clock = clock
    this.#startMs = clock.now()
    const dropped = metrics.counter({
      name: 'toolhive_otlp_dropped_total',
      help: 'Spans, log records and pages of metrics that did not reach the collector.',
      labels: ['signal', 'reason'],
    })
    const { maxItems, batchItems, intervalMs } = options
    const limits = {
      ...(maxItems !== undefined && { maxItems }),
      ...(batchItems !== undefined && { batchItems }),
      ...(intervalMs !== undefined && { intervalMs }),
    }
    const shared = (signal: OtlpSignal) => ({
      clock,
      onDropped: (count: number, why: DropReason) => dropped.with(signal, why).inc(count),
      onFailure: (why: string) => log.warn('could not send telemetry to the collector; retrying', { signal, why }),
    })
    this.#spans = new BatchQueue({ ...shared('traces'), ...limits, send: (items) => send('traces', tracesBody(source, items)) })
    // Audit events may hold whole requests and responses.
    const bytesOf = ({ body }: LogRecord) => body.length
    this.#logs = new BatchQueue({ ...shared('logs'), ...limits, bytesOf, send: (items) => send('logs', logsBody(source, items)) })
    // A page is out of date when the next one comes: only the newest is worth sending.
    this.#pages = new BatchQueue({ ...shared('metrics'), maxItems: 1, batchItems: 1, send: ([page = '']) => send('metrics', page) })
    if (metricsIntervalMs !== undefined) this.#arm(metricsIntervalMs)
  }

  addSpan(span: SpanRecord): void {
    this.#spans.add(span)
  }

  addLog(record: LogRecord): void {
    this.#logs.add(record)
  }

  /** Sends everything that waits and a last page of metrics; at most five seconds. */
  async close(signal: AbortSignal): Promise<void> {
    this.#timer?.cancel()
    if (this.#options.metricsIntervalMs !== undefined) this.#collect()
    const ended = new AbortController()
    const limit = this.#clock.sleep(CLOSE_MS, ended.signal).then(
      () => stop.abort(),
      () => undefined,
    )
    const stop = new AbortController()
    const ends = AbortSignal.any([signal, stop.signal])
    await Promise.all([this.#spans.close(ends), this.#logs.close(ends), this.#pages.close(ends)])
    ended.abort()
    await limit
  }

  #arm(intervalMs: number): void {
    this.#timer = this.#clock.setTimer(intervalMs, () => {
      this.#collect()
      this.#arm(intervalMs)
    })
  }

  #collect(): void {
    const { metrics, source } = this.#options
    if (this.#pages.size > 0) return // the collector has not taken the last one
    this.#pages.add(metricsBody(source, metrics.collect(), { startMs: this.#startMs, nowMs: this.#clock.now() }))
  }
}
