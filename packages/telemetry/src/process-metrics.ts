import { monitorEventLoopDelay, performance } from 'node:perf_hooks'
import { type IdleMemoryOptions, releaseMemoryWhenIdle } from '@thv/kernel/idle-memory'
import type { Counter, Metrics } from './metrics.ts'

const RESOLUTION_MS = 20
const NANOSECONDS = 1e9

type IdleOptions = Pick<IdleMemoryOptions, 'clock' | 'busyMs' | 'collect' | 'heap' | 'onError'>

export type ReleaseResult = 'done' | 'failed'

/** Gives memory back after each burst until the signal aborts, and counts how often. Returns how a thread's own releases are counted too. */
export function addMemoryRelease(metrics: Metrics, signal: AbortSignal, idle: IdleOptions = {}): (result: ReleaseResult) => void {
  const own = sharedMemoryRelease(signal, idle)(metrics, signal)
  return (result) => own[result].inc()
}

/** For programs that share a process: one watch gives memory back for all of them, and each counts it in its own metrics. */
export function sharedMemoryRelease(
  processSignal: AbortSignal,
  idle: IdleOptions = {},
): (metrics: Metrics, signal: AbortSignal) => ReleaseCounters {
  const counters = new Set<ReleaseCounters>()
  const count = (result: ReleaseResult) => {
    for (const each of counters) each[result].inc()
  }
  const onError = (error: unknown) => {
    count('failed')
    idle.onError?.(error)
  }
  releaseMemoryWhenIdle({ ...idle, signal: processSignal, onCollected: () => count('done'), onError })
  return (metrics, signal) => {
    const own = releaseCounters(metrics)
    counters.add(own)
    signal.addEventListener('abort', () => counters.delete(own), { once: true })
    return own
  }
}

function releaseCounters(metrics: Metrics): ReleaseCounters {
  const help = 'Collections that gave memory back after a burst of work.'
  const releases = metrics.counter({ name: 'toolhive_memory_releases_total', help, labels: ['result'] })
  return { done: releases.with('done'), failed: releases.with('failed') }
}

type ReleaseCounters = Readonly<Record<ReleaseResult, Counter>>

/** Memory, CPU and event loop of this process, read when the page is rendered. Dispose to stop the measuring. */
export function addProcessMetrics(metrics: Metrics): Disposable {
  const memory = metrics.gauge({ name: 'process_resident_memory_bytes', help: 'Resident memory.' }).with()
  const heap = metrics.gauge({ name: 'nodejs_heap_used_bytes', help: 'Used part of the JavaScript heap.' }).with()
  const cpu = metrics.counter({ name: 'process_cpu_seconds_total', help: 'CPU time in user and system mode.' }).with()
  const started = metrics.gauge({ name: 'process_start_time_seconds', help: 'When the process started, in seconds since 1970.' }).with()
  const delay = metrics.gauge({
    name: 'nodejs_eventloop_delay_seconds',
    help: 'How late timers fired since the last page, by quantile; 1 is the worst.',
    labels: ['quantile'],
  })
  const utilization = metrics
    .gauge({ name: 'nodejs_eventloop_utilization', help: 'Part of the time since the last page in which the event loop was busy.' })
    .with()
  const quantiles = [0.5, 0.99, 1].map((quantile) => ({ quantile, gauge: delay.with(String(quantile)) }))

  started.set(performance.timeOrigin / 1_000)
  const histogram = monitorEventLoopDelay({ resolution: RESOLUTION_MS })
  histogram.enable()
  let loop = performance.eventLoopUtilization()

  metrics.onCollect(() => {
    memory.set(process.memoryUsage.rss())
    heap.set(process.memoryUsage().heapUsed)
    const { user, system } = process.cpuUsage()
    cpu.inc(Math.max(0, (user + system) / 1e6 - cpu.value))
    for (const { quantile, gauge } of quantiles) gauge.set(lateness(histogram.percentile(quantile * 100), histogram.count))
    histogram.reset()
    const now = performance.eventLoopUtilization()
    utilization.set(performance.eventLoopUtilization(now, loop).utilization)
    loop = now
  })
  return { [Symbol.dispose]: () => void histogram.disable() }
}

/** The histogram holds the distance of two firings; what is over the resolution is delay. */
function lateness(nanoseconds: number, count: number): number {
  return count === 0 ? 0 : Math.max(0, nanoseconds - RESOLUTION_MS * 1e6) / NANOSECONDS
}
