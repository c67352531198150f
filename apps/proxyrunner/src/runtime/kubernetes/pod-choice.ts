import type { Pod } from '@thv/kube'
import { LISTENING_PORTS_CONDITION } from '@thv/kube/objects/listening-ports'
import { MCP_CONTAINER } from './pod-template.ts'

/** The pod to attach to: ready, not taken, and the newest of those, since it stays the longest. */
export function choosePod(pods: readonly Pod[], taken: ReadonlySet<string>): Pod | undefined {
  return pods.filter((pod) => isReady(pod) && !taken.has(uidOf(pod))).sort(newestFirst)[0]
}

export function isReady(pod: Pod): boolean {
  const { metadata, status } = pod
  return (
    metadata.deletionTimestamp === undefined &&
    status?.conditions?.some(({ type, status: value }) => type === 'Ready' && value === 'True') === true &&
    serverStatus(pod)?.state?.running !== undefined
  )
}

/** Whether nothing runs in it any more, and never will. */
export function isOver({ status }: Pod): boolean {
  return status?.phase === 'Failed' || status?.phase === 'Succeeded'
}

/** Names one process: a container that is started again is another one. */
export function instanceOf(pod: Pod): string {
  return `${uidOf(pod)}/${serverStatus(pod)?.restartCount ?? 0}`
}

export function uidOf(pod: Pod): string {
  return pod.metadata.uid ?? pod.metadata.name
}

/** Why a pod does not run, in the words of the kubelet. */
export function podProblem(pods: readonly Pod[]): string | undefined {
  for (const pod of pods) {
    const statuses = [...(pod.status?.initContainerStatuses ?? []), ...(pod.status?.containerStatuses ?? [])]
    const waiting = statuses.map(({ state }) => state?.waiting).find((state) => state?.reason !== undefined && !HARMLESS.has(state.reason))
    if (waiting) return `pod ${pod.metadata.name}: ${waiting.reason}${waiting.message ? `: ${waiting.message.slice(0, MAX_MESSAGE)}` : ''}`
    const unscheduled = pod.status?.conditions?.find(({ type, status }) => type === 'PodScheduled' && status === 'False')
    if (unscheduled)
      return `pod ${pod.metadata.name}: ${unscheduled.reason ?? 'not scheduled'}: ${(unscheduled.message ?? '').slice(0, MAX_MESSAGE)}`
  }
  return undefined
}

/** A process that ends once is started again; while that one is this young, the end is still the cause. */
const YOUNG_MS = 30_000

/** How the server of a pod has ended, if it has not lived on since. */
export function serverEnd(pods: readonly Pod[], now: number): { readonly exitCode: number } | undefined {
  for (const pod of pods) {
    const { state, lastState } = serverStatus(pod) ?? {}
    const startedAt = Date.parse((state?.running as { startedAt?: string } | undefined)?.startedAt ?? '')
    const hasLived = state?.running !== undefined && !(now - startedAt < YOUNG_MS)
    const end = state?.terminated ?? lastState?.terminated
    if (end !== undefined && !hasLived && end.reason !== 'ContainerStatusUnknown') return { exitCode: end.exitCode }
  }
  return undefined
}

/** Ports that the server listens on, where the node tells. */
export function listeningPorts(pods: readonly Pod[]): number[] {
  const texts = pods.flatMap(
    ({ status }) => status?.conditions?.filter(({ type, status }) => type === LISTENING_PORTS_CONDITION && status === 'True') ?? [],
  )
  return [...new Set(texts.flatMap(({ message = '' }) => message.match(/\d+/g)?.map(Number) ?? []))].sort((a, b) => a - b)
}

const HARMLESS = new Set(['ContainerCreating', 'PodInitializing'])
const MAX_MESSAGE = 200

function serverStatus({ status }: Pod) {
  return status?.containerStatuses?.find(({ name }) => name === MCP_CONTAINER)
}

/** Times have seconds only; of two pods of one second the higher number is the later one. */
function newestFirst(a: Pod, b: Pod): number {
  const [timeA, timeB] = [a.metadata.creationTimestamp ?? '', b.metadata.creationTimestamp ?? '']
  if (timeA !== timeB) return timeA < timeB ? 1 : -1
  return a.metadata.name < b.metadata.name ? 1 : -1
}
