import type { KubeEvent, KubeObject, Pod } from '@thv/kube'
import type { RunnerReason } from '@thv/runconfig/runner-events'
import { isLive } from '../deployment/status/pod-problem.ts'

/** Why the MCP server does not work, in the words of its runner. */
export interface RunnerReport {
  readonly reason: RunnerReason
  readonly message: string
}

/** The newest Event of a runner that still lives; undefined when that one says that all is well. Pure. */
export function newestReport(events: readonly KubeEvent[], owner: KubeObject, proxyPods: readonly Pod[]): RunnerReport | undefined {
  const runners = new Set(proxyPods.filter(isLive).map(({ metadata }) => metadata.name))
  const newest = events
    .filter(({ regarding, reportingInstance = '' }) => regarding?.uid === owner.metadata.uid && runners.has(reportingInstance))
    .reduce<KubeEvent | undefined>((best, event) => (best === undefined || timeOf(event) > timeOf(best) ? event : best), undefined)
  if (newest?.type !== 'Warning') return undefined
  return { reason: newest.reason as RunnerReason, message: newest.note ?? '' }
}

/** Of its last repetition. */
function timeOf({ series, eventTime = '' }: KubeEvent): number {
  return Date.parse(series?.lastObservedTime ?? eventTime) || 0
}
