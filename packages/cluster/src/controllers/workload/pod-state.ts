import type { Pod } from '@thv/kube'

export function isReady(pod: Pod): boolean {
  return readyCondition(pod)?.status === 'True'
}

/** Ready for at least so long. With no minimum a ready pod is available at once. */
export function isAvailable(pod: Pod, minReadySeconds: number, now: number): boolean {
  if (!isReady(pod)) return false
  if (minReadySeconds <= 0) return true
  const since = readySince(pod)
  return since !== undefined && since + minReadySeconds * 1_000 < now
}

/** Milliseconds until the first pod that is ready becomes available, or undefined when time will change nothing. */
export function nextAvailable(pods: readonly Pod[], minReadySeconds: number, now: number): number | undefined {
  let next: number | undefined
  for (const pod of pods) {
    const since = isReady(pod) ? readySince(pod) : undefined
    if (since === undefined || minReadySeconds <= 0) continue
    const wait = since + minReadySeconds * 1_000 - now
    if (wait >= 0 && (next === undefined || wait < next)) next = wait
  }
  // A pod becomes available after that moment, not at it.
  return next === undefined ? undefined : next + 1
}

/** Epoch milliseconds; undefined when the condition names no time. */
export function readySince(pod: Pod): number | undefined {
  const time = Date.parse(readyCondition(pod)?.lastTransitionTime ?? '')
  return Number.isNaN(time) ? undefined : time
}

/** Has ended for good, by itself. */
export function isOver(pod: Pod): boolean {
  return pod.status?.phase === 'Succeeded' || pod.status?.phase === 'Failed'
}

export function isTerminating(pod: Pod): boolean {
  return pod.metadata.deletionTimestamp !== undefined
}

/** Counts as a replica. */
export function isActive(pod: Pod): boolean {
  return !isOver(pod) && !isTerminating(pod)
}

function readyCondition(pod: Pod) {
  return pod.status?.conditions?.find(({ type }) => type === 'Ready')
}
