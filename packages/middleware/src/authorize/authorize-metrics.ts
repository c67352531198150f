import type { Gauge, Metrics } from '@thv/telemetry/metrics'
import type { PolicyLoad } from './live-policies.ts'

type Decided = 'allow' | 'deny'

export interface DecisionMetrics {
  readonly decided: (decision: Decided) => void
  readonly differed: (candidate: Decided) => void
}

export function createDecisionMetrics(metrics: Metrics): DecisionMetrics {
  const decisions = metrics.counter({
    name: 'toolhive_mcp_authz_decisions_total',
    help: 'Messages that policies judged, by their decision.',
    labels: ['decision'],
  })
  const differences = metrics.counter({
    name: 'toolhive_mcp_authz_candidate_differences_total',
    help: 'Messages that the candidate policies decide otherwise, by the decision of the candidate.',
    labels: ['candidate'],
  })
  const bound = { allow: decisions.with('allow'), deny: decisions.with('deny') }
  const boundDifferences = { allow: differences.with('allow'), deny: differences.with('deny') }
  return {
    decided: (decision) => bound[decision].inc(),
    differed: (candidate) => boundDifferences[candidate].inc(),
  }
}

export interface LoadMetrics {
  readonly loaded: (event: PolicyLoad) => void
}

export function createLoadMetrics(metrics: Metrics): LoadMetrics {
  const loads = metrics.counter({
    name: 'toolhive_mcp_authz_loads_total',
    help: 'Attempts to load policies. After a failed one the set before stays in force.',
    labels: ['outcome'],
  })
  const info = metrics.gauge({
    name: 'toolhive_mcp_authz_policies_info',
    help: 'The policies in force have value 1, by the hash of their document; those before have 0.',
    labels: ['hash'],
  })
  let inForce: Gauge | undefined
  return {
    loaded(event) {
      loads.with(event.outcome).inc()
      if (event.outcome === 'failed') return
      inForce?.set(0)
      inForce = info.with(event.hash)
      inForce.set(1)
    },
  }
}
