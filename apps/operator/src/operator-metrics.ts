import type { Controller, ReconcileReport } from '@thv/kube'
import { DURATION_BUCKETS, type Metrics } from '@thv/telemetry/metrics'
import type { OperatorCaches } from './caches/operator-caches.ts'
import { gatewayKindChanges } from './export/follower-of.ts'

export interface OperatorMetricsSources {
  readonly caches: OperatorCaches
  readonly controllers: () => readonly Controller[]
  readonly isLeader: () => boolean
}

export interface ObservedOperator {
  readonly onReconcile: (controller: string, report: ReconcileReport) => void
}

export function addOperatorMetrics(metrics: Metrics, { caches, controllers, isLeader }: OperatorMetricsSources): ObservedOperator {
  const leader = metrics.gauge({ name: 'thv_operator_leader', help: '1 while this process holds the lease and works.' })
  const depth = metrics.gauge({ name: 'thv_operator_queue_depth', help: 'Objects that wait for their turn.', labels: ['controller'] })
  const active = metrics.gauge({ name: 'thv_operator_reconciles_active', help: 'Objects that are worked on.', labels: ['controller'] })
  const stuck = metrics.gauge({
    name: 'thv_operator_reconciles_stuck',
    help: 'Reconciles still running after they were aborted.',
    labels: ['controller'],
  })
  const seconds = metrics.histogram({
    name: 'thv_operator_reconcile_seconds',
    help: 'Time of one reconcile.',
    labels: ['controller'],
    buckets: DURATION_BUCKETS,
  })
  const results = metrics.counter({
    name: 'thv_operator_reconciles_total',
    help: 'Reconciles by their result.',
    labels: ['controller', 'result'],
  })
  const gatewayKinds = metrics.gauge({
    name: 'thv_operator_gateway_kind_changes',
    help: 'Times that a kind of the Gateway API came, went, or lost or got its rights, since it is watched.',
  })
  const objects = metrics.gauge({ name: 'thv_operator_cache_objects', help: 'Objects in a cache.', labels: ['kind'] })
  const relists = metrics.gauge({
    name: 'thv_operator_watch_gaps',
    help: 'Times since the start that a watch had to be replaced by a fresh list.',
    labels: ['kind'],
  })
  const missed = metrics.gauge({
    name: 'thv_operator_watch_missed_events',
    help: 'Changes that a watch did not bring and a safety check repaired. Should stay 0.',
    labels: ['kind'],
  })
  metrics.onCollect(() => {
    gatewayKinds.with().set(gatewayKindChanges(caches))
    leader.with().set(isLeader() ? 1 : 0)
    for (const { name, stats } of controllers()) {
      depth.with(name).set(stats.depth)
      active.with(name).set(stats.active)
      stuck.with(name).set(stats.stuck)
    }
    for (const reflector of caches.shared.all) {
      objects.with(reflector.name).set(reflector.store.size)
      relists.with(reflector.name).set(reflector.stats.relists)
      missed.with(reflector.name).set(reflector.stats.missed)
    }
  })
  return {
    onReconcile(controller, { durationMs, result }) {
      seconds.with(controller).observe(durationMs / 1_000)
      results.with(controller, result).inc()
    },
  }
}
