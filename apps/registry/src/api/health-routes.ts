import type { Exchange } from '@thv/http/server/exchange'
import { sendBytes, sendJson } from '@thv/http/server/respond'
import { CONTENT_TYPE, type Counter, type Metrics } from '@thv/telemetry/metrics'
import type { EngineStatus, LeaderStatus, RegistryEngine } from '../engine/engine.ts'
import type { VersionInfo } from './http/api-context.ts'
import { sendApiError } from './http/api-error.ts'
import type { StatusRoutes } from './status-routes.ts'

export interface HealthRoutes {
  /** False: not one of these paths. */
  handle(exchange: Exchange): boolean
}

export interface HealthOptions {
  readonly version: VersionInfo
  /** Without it there is no `/metrics`. */
  readonly metrics?: Metrics
  /** Say which sources and registries are not ready. Not where claims may hide them from the caller. */
  readonly names?: boolean
}

const NO_STORE = ['Cache-Control', 'no-store']

/** `/health`, `/readiness`, `/version` and `/metrics`: what watches over the server. They look at what is known and wait for nothing. */
export function createHealthRoutes(engine: Pick<RegistryEngine, 'status'>, options: HealthOptions): HealthRoutes {
  const { version, metrics, names = true } = options
  const about = {
    version: version.version,
    commit: version.commit,
    build_date: version.buildDate,
    node_version: process.version,
    platform: `${process.platform}/${process.arch}`,
  }

  const answers: Readonly<Record<string, (exchange: Exchange) => void>> = {
    '/health': (exchange) => sendJson(exchange, { status: 'healthy', ...leaderOf(engine.status) }, { headers: NO_STORE }),
    '/readiness': (exchange) => sendReadiness(exchange, engine.status, notReadyReasons(engine.status, { names })),
    '/version': (exchange) => sendJson(exchange, about, { headers: NO_STORE }),
    ...(metrics && {
      '/metrics': (exchange: Exchange) =>
        sendBytes(exchange, 200, { type: CONTENT_TYPE, body: Buffer.from(metrics.render()), headers: NO_STORE }),
    }),
  }

  return {
    handle(exchange) {
      const { path, method } = exchange
      const answer = Object.hasOwn(answers, path) ? answers[path] : undefined
      if (answer === undefined) return false
      if (method === 'GET' || method === 'HEAD') answer(exchange)
      else sendApiError(exchange, 405, { error: `${method} is not possible here`, headers: ['Allow', 'GET, HEAD'] })
      return true
    },
  }
}

/** For an address that has nothing else. */
export function createDiagnostics(health: HealthRoutes, status: StatusRoutes): { handle(exchange: Exchange): void | Promise<void> } {
  return {
    handle(exchange) {
      if (health.handle(exchange)) return
      const answering = status.handle(exchange)
      if (answering === false) sendApiError(exchange, 404, { error: 'there is nothing at this path' })
      else if (answering !== true) return answering
    },
  }
}

/**
 * Why reads should go elsewhere; empty: they need not. A source that failed does not count: its last data are served, or others' are.
 * Nor does a store that is lost once it has been read: what is in memory is served, and no other replica can do more.
 */
export function notReadyReasons({ storeError, loaded, unbuilt, unsynced, leader }: EngineStatus, { names }: { names: boolean }): string[] {
  const some = (what: string, which: readonly string[]) => (names ? `${what} ${listed(which)}` : `${which.length} ${what}`)
  return [
    ...(storeError === undefined || loaded ? [] : ['store: the database does not answer']),
    ...(unbuilt.length === 0 ? [] : [`unbuilt: ${some('registries', unbuilt)}`]),
    ...(unsynced.length === 0 ? [] : [`unsynced: ${some('sources', unsynced)}`]),
    ...leaderReasons(leader, names),
  ]
}

/** Another replica's result is seen in a shared store only. */
function leaderReasons(leader: LeaderStatus | undefined, names: boolean): string[] {
  if (leader === undefined || leader.leading) return []
  if (leader.problem !== undefined) return [names ? `leader: ${leader.problem}` : 'leader: the Lease cannot be taken']
  return leader.ownStore ? ['leader: another replica leads, and this one has a store of its own'] : []
}

function leaderOf({ leader }: EngineStatus): { leader?: boolean } {
  return leader === undefined ? {} : { leader: leader.leading }
}

/** The status is about reads; `store` tells whether writes, and news of other replicas, can be expected too. */
function sendReadiness(exchange: Exchange, status: EngineStatus, reasons: readonly string[]): void {
  const store = status.storeError === undefined ? 'available' : 'unavailable'
  const leader = leaderOf(status)
  if (reasons.length === 0) sendJson(exchange, { status: 'ready', store, ...leader }, { headers: NO_STORE })
  else
    sendJson(exchange, { error: 'service not ready', code: 'unavailable', store, ...leader, reasons }, { status: 503, headers: NO_STORE })
}

const MAX_LISTED = 5

function listed(names: readonly string[]): string {
  const more = names.length - MAX_LISTED
  return more > 0 ? `${names.slice(0, MAX_LISTED).join(', ')} and ${more} more` : names.join(', ')
}

/** The engine's figures, and answers by operation and class of status. */
export function addRegistryMetrics(
  metrics: Metrics,
  engine: Pick<RegistryEngine, 'status'>,
): (operationId: string, exchange: Exchange) => void {
  const requests = metrics.counter({ name: 'thv_registry_requests_total', help: 'Answers.', labels: ['operation', 'status'] })
  const syncs = metrics.counter({ name: 'thv_registry_syncs_total', help: 'Syncs of this replica since its start.', labels: ['result'] })
  const gauge = (name: string, help: string) => metrics.gauge({ name, help }).with()
  const revision = gauge('thv_registry_revision', 'Revision of the store that is served.')
  const unbuilt = gauge('thv_registry_unbuilt_registries', 'Registries that are not loaded yet.')
  const failed = gauge('thv_registry_failed_sources', 'Sources whose last sync failed.')
  const store = gauge('thv_registry_store_up', '1 if the store answers.')
  const leading = gauge('thv_registry_leader', '1 while this replica reads the cluster of the kubernetes sources.')
  const transitions = metrics
    .counter({ name: 'thv_registry_leader_transitions_total', help: 'Times that leadership of this replica came or went.' })
    .with()
  const kinds = metrics
    .counter({
      name: 'thv_registry_cluster_kind_changes_total',
      help: 'Times that a kind of a cluster went, came, or lost or got its rights.',
    })
    .with()
  metrics.onCollect(() => {
    const { status } = engine
    kinds.inc(Math.max(0, (status.kindChanges ?? 0) - kinds.value))
    leading.set(status.leader === undefined || status.leader.leading ? 1 : 0)
    transitions.inc(Math.max(0, (status.leader?.transitions ?? 0) - transitions.value))
    revision.set(status.revision)
    unbuilt.set(status.unbuilt.length)
    failed.set(status.failed.length)
    store.set(status.storeError === undefined ? 1 : 0)
    for (const result of ['succeeded', 'unchanged', 'failed'] as const) {
      const counter = syncs.with(result)
      // A restarted engine counts from 0.
      counter.inc(Math.max(0, status.syncs[result] - counter.value))
    }
  })
  // Bound once: a request then costs two look-ups and no text.
  const bound = new Map<string, (Counter | undefined)[]>()
  return (operationId, exchange) => {
    let counters = bound.get(operationId)
    if (counters === undefined) {
      counters = []
      bound.set(operationId, counters)
    }
    const kind = Math.trunc(exchange.status / 100)
    const counter = counters[kind] ?? requests.with(operationId === '' ? 'none' : operationId, `${kind}xx`)
    counters[kind] = counter
    counter.inc()
  }
}
