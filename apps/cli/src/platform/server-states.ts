import type { ContainerStatus, Deployment, Pod, StatusCondition } from '@thv/kube/objects/builtin-kinds'
import type { KubeObject } from '@thv/kube/objects/types'
import { WorkloadReason } from '@thv/resources/shared/workload-conditions'
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
    readonly conditions?: StatusCondition[]
  }
}

/** Reasons of a waiting container that do not pass by themselves soon. */
const TROUBLE = /BackOff|Err|Invalid|UnsafeBind|Error/

const TOLD_BY_RUNNER: ReadonlySet<string> = new Set([
  WorkloadReason.BackendPortClosed,
  WorkloadReason.BackendNotMcp,
  WorkloadReason.HandshakeTimedOut,
  WorkloadReason.ServerEnded,
  WorkloadReason.WorkloadForeign,
])

/** Pure: from the resource and the pods that carry its name. */
export function serverState(server: ServerResource, pods: readonly Pod[]): ServerState {
  const { name, generation } = server.metadata
  const { status = {} } = server
  const ready = status.conditions?.find(({ type }) => type === 'Ready')
  const isCurrent = status.observedGeneration === undefined || status.observedGeneration === generation
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

/** The problem of a pod, in one line. */
export function podTrouble(pod: Pod): string | undefined {
  const where = `pod ${pod.metadata.name}`
  if (pod.status?.phase === 'Failed')
    return `${where}: ${pod.status.reason ?? 'failed'}${pod.status.message ? `: ${plainText(pod.status.message)}` : ''}`
  for (const status of allStatuses(pod)) {
    const { waiting } = status.state ?? {}
    if (waiting?.reason === undefined || !TROUBLE.test(waiting.reason)) continue
    if (PULL.test(waiting.reason)) return `${where}: no image: ${pullMessage(waiting.message)}${adviceFor(waiting.message)}`
    const last = status.lastState?.terminated
    if (waiting.reason === 'CrashLoopBackOff' && last) {
      const said = last.message ? `: ${plainText(last.message)}` : ''
      return `${where}: CrashLoopBackOff: exit code ${last.exitCode}${said}; "thv logs pod/${pod.metadata.name}" shows why`
    }
    const ended = last ? ` (exit code ${last.exitCode}${last.message ? `: ${plainText(last.message)}` : ''})` : ''
    return `${where}: ${waiting.reason}${waiting.message ? `: ${plainText(waiting.message)}` : ''}${ended}${adviceFor(waiting.message)}`
  }
  return undefined
}

/** A pod goes to and fro between these two while it tries; to people it is one trouble, told once. */
const PULL = /^(ErrImagePull|ImagePullBackOff)$/

function pullMessage(message = ''): string {
  return plainText(
    message
      .replace(/^Back-off pulling image "[^"]*": /, '')
      .replace(/^ErrImagePull: /, '')
      .replace(/^image: /, ''),
  )
}

/** System error codes for an unreachable network. */
const NO_NETWORK = /\b(ECONNREFUSED|ENOTFOUND|EAI_AGAIN|ETIMEDOUT|ENETUNREACH|EHOSTUNREACH|ECONNRESET)\b/

function adviceFor(message = ''): string {
  const isNetwork = message.includes('could not be installed') && NO_NETWORK.test(message)
  return isNetwork ? '. The package registry cannot be reached; check the network, proxy and registry settings' : ''
}

function isPulling(pod: Pod): boolean {
  return allStatuses(pod).some(({ state }) => state?.waiting !== undefined && state.waiting.reason !== 'PodInitializing')
}

function allStatuses({ status }: Pod): ContainerStatus[] {
  return [...(status?.initContainerStatuses ?? []), ...(status?.containerStatuses ?? [])]
}
