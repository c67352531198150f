import type { Counter, Metrics } from '@thv/telemetry/metrics'

/** Why something that a server or client sent went nowhere. */
export type DropReason =
  /** A response, progress or answer under an id that this process did not give out: of an earlier runner, or made up. */
  | 'foreign_id'
  /** One that it did give out, but no client waits for it. */
  | 'late'
  /** The receiver cannot be determined with certainty. */
  | 'unattributed'
  /** Less severe than the client wants to hear. */
  | 'level'
  /** The client takes its answers as JSON only, or has no stream open. */
  | 'no_stream'
  /** The client is slower than the server. */
  | 'slow_client'
  /** A line that is no message. */
  | 'noise'

export type DropSubject = 'response' | 'request' | 'notification' | 'progress' | 'log' | 'line'

/** Counters of the bridge. */
export interface StdioMetrics {
  dropped(what: DropSubject, reason: DropReason): void
  processStarted(): void
  processEnded(): void
  /** A start that failed, or a process that did not live long. */
  processFailed(): void
}

export interface StdioGauges {
  readonly sessions: number
  readonly inFlight: number
}

export function createStdioMetrics(registry: Metrics, gauges: () => StdioGauges): StdioMetrics {
  const drops = registry.counter({
    name: 'toolhive_stdio_dropped_total',
    help: 'Messages of stdio servers or their clients that were dropped, by kind and reason.',
    labels: ['what', 'reason'],
  })
  const up = registry.gauge({ name: 'toolhive_stdio_processes', help: 'Processes of the stdio server that are up.' }).with()
  const starts = registry.counter({ name: 'toolhive_stdio_process_starts_total', help: 'Processes of the stdio server started.' }).with()
  const failures = registry
    .counter({ name: 'toolhive_stdio_process_failures_total', help: 'Processes of the stdio server that did not start or did not last.' })
    .with()
  const sessions = registry.gauge({ name: 'toolhive_stdio_sessions', help: 'Sessions of the handshake era held by this process.' }).with()
  const inFlight = registry.gauge({ name: 'toolhive_stdio_in_flight', help: 'Calls that the stdio server has not answered yet.' }).with()
  registry.onCollect(() => {
    sessions.set(gauges().sessions)
    inFlight.set(gauges().inFlight)
  })
  const bound = new Map<string, Counter>()
  return {
    dropped(what, reason) {
      const key = `${what} ${reason}`
      const counter = bound.get(key) ?? drops.with(what, reason)
      bound.set(key, counter)
      counter.inc()
    },
    processStarted() {
      starts.inc()
      up.inc()
    },
    processEnded: () => up.dec(),
    processFailed: () => failures.inc(),
  }
}
