import type { Deployment, Pod } from '@thv/kube/objects/builtin-kinds'
import type { KubeObject } from '@thv/kube/objects/types'
import { WorkloadReason } from '@thv/resources/shared/workload-conditions'
import { allStatuses, podTrouble } from '../local-platform/pod-trouble.ts'
import { type ResourceCondition, refusedWrite } from '../local-platform/refused-write.ts'
import { plainText } from '../text/plain-text.ts'

/** How far a server is, for people. */
export interface ServerState {
  readonly name: string
  readonly state: 'waiting' | 'pulling' | 'starting' | 'ready' | 'failing'
  readonly url?: string
  /** The progress, or the problem and what to do about it. */
  readonly detail: string
}

export interface ServerResource extends KubeObject {
  readonly spec?: { readonly image?: string; readonly remoteUrl?: string }
  readonly status?: {
    readonly url?: string
    readonly phase?: string
    readonly message?: string
    readonly observedGeneration?: number
    readonly conditions?: ResourceCondition[]
  }
}

const TOLD_BY_RUNNER: ReadonlySet<string> = new Set([
  WorkloadReason.BackendPortClosed,
  WorkloadReason.BackendNotMcp,
  WorkloadReason.HandshakeTimedOut,
  WorkloadReason.ServerEnded,
  WorkloadReason.WorkloadForeign,
  WorkloadReason.WriteRefused,
])

/** Pure: from the resource and the pods that carry its name. */
export function serverState(server: ServerResource, pods: readonly Pod[]): ServerState {
  const { name, generation } = server.metadata
  const { status = {} } = server
  const ready = status.conditions?.find(({ type }) => type === 'Ready')
  const isCurrent = status.observedGeneration === undefined || status.observedGeneration === generation
  const refused = refusedWrite(server)
  if (refused !== undefined) return { name, state: 'failing', detail: refused }
  if (isCurrent && ready?.status === 'True' && status.url) return { name, state: 'ready', url: status.url.replace(/#.*$/, ''), detail: '' }
  // The runner's diagnosis is more precise than the state of its pods.
  if (isCurrent && ready?.reason !== undefined && TOLD_BY_RUNNER.has(ready.reason))
    return { name, state: 'failing', detail: plainText(ready.message) }
  const trouble = pods.map(podTrouble).find((each) => each !== undefined)
  if (trouble !== undefined) return { name, state: 'failing', detail: trouble }
  if (status.phase === 'Failed') return { name, state: 'failing', detail: plainText(status.message || ready?.message) || 'failed' }
  if (status.conditions === undefined) return { name, state: 'waiting', detail: 'for the operator' }
  const image = server.spec?.image ?? ''
  const serverPod = pods.find((pod) => pod.spec?.containers.some((container) => container.image === image))
  if (serverPod && isPulling(serverPod)) return { name, state: 'pulling', detail: image }
  return { name, state: 'starting', detail: pods.length === 0 ? '' : serverPod === undefined ? 'the proxy' : 'the server' }
}

/** The operator's Deployment and its pods. */
export function operatorState(deployment: Deployment | undefined, pods: readonly Pod[]): ServerState {
  const name = 'operator'
  if ((deployment?.status?.availableReplicas ?? 0) > 0) return { name, state: 'ready', detail: '' }
  const trouble = pods.map(podTrouble).find((each) => each !== undefined)
  if (trouble !== undefined) return { name, state: 'failing', detail: trouble }
  return { name, state: deployment === undefined ? 'waiting' : 'starting', detail: '' }
}

function isPulling(pod: Pod): boolean {
  return allStatuses(pod).some(({ state }) => state?.waiting !== undefined && state.waiting.reason !== 'PodInitializing')
}
