import type { ContainerStatus, Pod } from '@thv/kube'
import { WorkloadReason } from '@thv/resources/shared/workload-conditions'

export interface PodProblem {
  /** An exported constant; undefined for what has none. */
  readonly reason: string | undefined
  /** Whether it will not go away by itself. */
  readonly fatal: boolean
  readonly message: string
}

/** The part that the pod plays in the workload. */
export interface PodRole {
  /** In messages, such as `proxy`. */
  readonly name: string
  /** Advice when the image cannot be pulled. */
  readonly imageAdvice: string
}

/** Waiting reasons of the kubelet: whether waiting helps, and what to look at. */
const WAITING: Readonly<Record<string, { readonly fatal: boolean; readonly advice: (role: PodRole) => string }>> = {
  [WorkloadReason.ImagePullBackOff]: { fatal: false, advice: imageAdvice },
  [WorkloadReason.ErrImagePull]: { fatal: false, advice: imageAdvice },
  [WorkloadReason.ErrImageNeverPull]: { fatal: false, advice: imageAdvice },
  [WorkloadReason.InvalidImageName]: { fatal: true, advice: imageAdvice },
  [WorkloadReason.CrashLoopBackOff]: { fatal: true, advice: () => 'Look at its log (kubectl logs --previous).' },
  [WorkloadReason.CreateContainerError]: { fatal: true, advice: () => 'Look at the events of the pod.' },
  [WorkloadReason.RunContainerError]: { fatal: true, advice: () => 'Check its command and arguments.' },
  [WorkloadReason.CreateContainerConfigError]: { fatal: false, advice: () => 'Create the Secret or ConfigMap that is missing.' },
}

function imageAdvice(role: PodRole): string {
  return role.imageAdvice
}

/** The problem that weighs most, of pods that are not going anyway; one that will not go away before one that may. */
export function worstProblem(pods: readonly Pod[], role: PodRole): PodProblem | undefined {
  const live = pods.filter(isLive)
  const problems = live.filter((pod) => !isReady(pod)).flatMap((pod) => podProblems(pod, role))
  // Pods that are over (evicted, say) lie about until somebody cleans up: they count only while nothing takes their place.
  const over = live.length > 0 ? [] : pods.filter((pod) => isOver(pod) && !isGoing(pod)).map((pod) => overProblem(pod, role))
  const all = [...problems, ...over]
  return all.find(({ fatal }) => fatal) ?? all[0]
}

/** Runs, or is on its way. */
export function isLive(pod: Pod): boolean {
  return !isGoing(pod) && !isOver(pod)
}

export function isReady(pod: Pod): boolean {
  return isLive(pod) && pod.status?.conditions?.some(({ type, status }) => type === 'Ready' && status === 'True') === true
}

function isGoing({ metadata }: Pod): boolean {
  return metadata.deletionTimestamp !== undefined
}

function isOver({ status }: Pod): boolean {
  return status?.phase === 'Failed' || status?.phase === 'Succeeded'
}

function overProblem(pod: Pod, role: PodRole): PodProblem {
  const { status, metadata } = pod
  const why = status?.reason === undefined ? '' : ` (${status.reason})`
  return {
    reason: WorkloadReason.PodFailed,
    fatal: true,
    message: `${capital(role)} pod ${metadata.name} has ended${why}. Look at its log and events: kubectl describe pod ${metadata.name}`,
  }
}

function podProblems(pod: Pod, role: PodRole): PodProblem[] {
  const { initContainerStatuses = [], containerStatuses = [], conditions = [] } = pod.status ?? {}
  const problems = [...initContainerStatuses, ...containerStatuses].flatMap((status) => containerProblem(pod, status, role))
  const scheduled = conditions.find(({ type }) => type === 'PodScheduled')
  if (scheduled?.status === 'False') {
    const why = cut(scheduled.message ?? scheduled.reason ?? 'no reason given')
    problems.push({
      reason: WorkloadReason.Unschedulable,
      fatal: false,
      message: `${capital(role)} pod ${pod.metadata.name} finds no node: ${why}`,
    })
  }
  return problems
}

function containerProblem(pod: Pod, status: ContainerStatus, role: PodRole): PodProblem[] {
  const { state = {}, lastState, name } = status
  const image = [...(pod.spec?.containers ?? []), ...(pod.spec?.initContainers ?? [])].find((container) => container.name === name)?.image
  const what = `Container ${name}${image === undefined ? '' : ` (image ${image})`} of ${role.name} pod ${pod.metadata.name}`
  const crash = isCrashing(status) ? (state.terminated ?? lastState?.terminated) : undefined
  if (crash !== undefined) {
    const { reason } = waitingFor(WorkloadReason.CrashLoopBackOff)
    return [
      {
        reason,
        fatal: true,
        message: `${what}: ${reason}${lastExit(crash)}. Look at its log: kubectl logs ${pod.metadata.name} -c ${name} --previous`,
      },
    ]
  }
  if (state.waiting?.reason !== undefined && !HARMLESS.has(state.waiting.reason)) {
    const { reason, fatal, advice } = waitingFor(state.waiting.reason)
    const said = state.waiting.message ? `: ${cut(state.waiting.message)}` : ''
    const hint = said !== '' && isPackage(image) ? '' : ` ${advice(role)}`
    return [{ reason, fatal, message: `${what}: ${state.waiting.reason}${said}.${hint}` }]
  }
  if (state.terminated !== undefined && state.terminated.exitCode !== 0) {
    return [
      {
        reason: WorkloadReason.ContainerTerminated,
        fatal: true,
        message: `${what} has ended${lastExit(state.terminated)}. Look at its log: kubectl logs ${pod.metadata.name} -c ${name}`,
      },
    ]
  }
  return []
}

/** Run as it is by the platform without a cluster, which says itself what to do; pull secrets have no part in it. */
function isPackage(image: string | undefined): boolean {
  return image !== undefined && /^[a-z]+:\/\//.test(image)
}

/** A node that starts again says so of what ran on it: it did not crash. */
const NODE_ENDED = 'ContainerStatusUnknown'

/** From the second crash on the answer is the same whether it is just waiting, running or ending: the status must not flicker. */
function isCrashing({ ready, restartCount = 0, state = {}, lastState }: ContainerStatus): boolean {
  if (state.waiting?.reason === WorkloadReason.CrashLoopBackOff) return (lastState?.terminated ?? state.terminated) !== undefined
  const last = state.terminated ?? lastState?.terminated
  if (last === undefined || last.exitCode === 0 || last.reason === NODE_ENDED) return false
  return ready !== true && restartCount >= 2 && state.waiting === undefined
}

function waitingFor(reason: string): { reason: string | undefined; fatal: boolean; advice: (role: PodRole) => string } {
  const known = WAITING[reason]
  return known === undefined ? { reason: undefined, fatal: false, advice: () => 'Look at the events of the pod.' } : { reason, ...known }
}

const HARMLESS = new Set(['ContainerCreating', 'PodInitializing'])
/** Of a longer message the beginning and the end: nodes write the cause and the advice last. */
const KEPT = { first: 150, last: 450 }

/** Never the termination message: it comes from the program, which may say anything. */
function lastExit(terminated: { exitCode: number; reason?: string } | undefined): string {
  if (terminated === undefined) return ''
  const isOutOfMemory = terminated.reason === 'OOMKilled'
  return `, exit code ${terminated.exitCode}${isOutOfMemory ? ' (out of memory: raise its limit)' : ''}`
}

export function cut(text: string): string {
  const said = text.replace(/\.$/, '')
  return said.length <= KEPT.first + KEPT.last ? said : `${said.slice(0, KEPT.first)} … ${said.slice(-KEPT.last)}`
}

function capital({ name }: PodRole): string {
  return `${name.slice(0, 1).toUpperCase()}${name.slice(1)}`
}
