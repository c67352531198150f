import type { Pod } from '@thv/kube'
import { isActive, isReady, readySince } from '../workload/pod-state.ts'

export interface DeletionContext {
  /** Pods of the same workload, also those of its other replica sets. */
  readonly related: readonly Pod[]
  readonly now: number
}

/** The pods to delete when there are so many too many: those first whose loss costs least. */
export function podsToDelete(pods: readonly Pod[], count: number, { related, now }: DeletionContext): Pod[] {
  if (count >= pods.length) return [...pods]
  const onNode = new Map<string, number>()
  for (const pod of related) if (isActive(pod)) onNode.set(nodeOf(pod), (onNode.get(nodeOf(pod)) ?? 0) + 1)
  const neighbours = (pod: Pod) => onNode.get(nodeOf(pod)) ?? 0
  return pods.toSorted((a, b) => compare(a, b, { neighbours, now })).slice(0, count)
}

interface CompareContext {
  neighbours(pod: Pod): number
  readonly now: number
}

/**
 * Negative when `a` should go first: not on a node, not started, not ready, cheaper by its annotation, on a fuller node, ready for less
 * time, restarted more often, younger. Times count by their order of magnitude: among pods of about one age it is the uid that decides,
 * which spreads deletions over them.
 */
function compare(a: Pod, b: Pod, { neighbours, now }: CompareContext): number {
  return (
    Number(nodeOf(a) !== '') - Number(nodeOf(b) !== '') ||
    phaseRank(a) - phaseRank(b) ||
    Number(isReady(a)) - Number(isReady(b)) ||
    deletionCost(a) - deletionCost(b) ||
    neighbours(b) - neighbours(a) ||
    (isReady(a) && isReady(b) ? compareTimes(readySince(a), readySince(b), { a, b, now }) : 0) ||
    restarts(b) - restarts(a) ||
    sidecarRestarts(b) - sidecarRestarts(a) ||
    compareTimes(timeOf(a.metadata.creationTimestamp), timeOf(b.metadata.creationTimestamp), { a, b, now })
  )
}

/** Later first; without a time comes before any. */
function compareTimes(first: number | undefined, second: number | undefined, { a, b, now }: { a: Pod; b: Pod; now: number }): number {
  if (first === second) return 0
  if (first === undefined || second === undefined) return first === undefined ? -1 : 1
  return magnitude(now - first) - magnitude(now - second) || ((a.metadata.uid ?? '') < (b.metadata.uid ?? '') ? -1 : 1)
}

/** Of an age in nanoseconds, whose logarithm the real controller takes. */
function magnitude(ageMs: number): number {
  return ageMs > 0 ? Math.trunc(Math.log2(ageMs * 1e6)) : -1
}

function phaseRank(pod: Pod): number {
  return ['Pending', 'Unknown', 'Running'].indexOf(pod.status?.phase ?? 'Pending')
}

const COST = 'controller.kubernetes.io/pod-deletion-cost'

function deletionCost(pod: Pod): number {
  const text = pod.metadata.annotations?.[COST] ?? ''
  return /^(0|-?[1-9][0-9]*)$/.test(text) ? Number(text) : 0
}

function restarts(pod: Pod): number {
  return Math.max(0, ...(pod.status?.containerStatuses ?? []).map(({ restartCount = 0 }) => restartCount))
}

function sidecarRestarts(pod: Pod): number {
  const sidecars = new Set((pod.spec?.initContainers ?? []).filter((one) => one['restartPolicy'] === 'Always').map(({ name }) => name))
  const statuses = (pod.status?.initContainerStatuses ?? []).filter(({ name }) => sidecars.has(name))
  return Math.max(0, ...statuses.map(({ restartCount = 0 }) => restartCount))
}

function nodeOf(pod: Pod): string {
  return pod.spec?.nodeName ?? ''
}

function timeOf(text: string | undefined): number | undefined {
  const time = Date.parse(text ?? '')
  return Number.isNaN(time) ? undefined : time
}
