import type { Deployment, Pod } from '@thv/kube'
import { WorkloadReason } from '@thv/resources/shared/workload-conditions'
import { cut, isLive, isReady, type PodProblem, type PodRole, worstProblem } from './pod-problem.ts'

export interface ObservedPods {
  readonly deployment: Deployment | undefined
  readonly pods: readonly Pod[]
}

export interface PodsHealth<Phase extends string> {
  readonly phase: Phase
  /** Of condition `Ready`, which is True when `phase` says so. */
  readonly reason: string
  /** Says what to do next when something is wrong. */
  readonly message: string
  /** Pods of the Deployment, and those of them that are ready. */
  readonly replicas: number
  readonly readyReplicas: number
  /** Ready pods of the server behind it; 0 without one. */
  readonly serverReadyReplicas: number
}

/** A kind's phases and reasons for the common states. */
export interface HealthWords<Phase extends string> {
  /** Of the Deployment's pods, in messages. */
  readonly role: PodRole
  readonly pending: Phase
  readonly ready: Phase
  readonly failed: Phase
  readonly stopped: Phase
  readonly readyReason: string
  readonly notReadyReason: string
}

/** Health of a server that the Deployment's pods stand in front of. */
export interface InnerHealth {
  readonly problem: PodProblem | undefined
  /** The part that is still awaited. */
  readonly wait: string | undefined
  readonly readyPods: number
  readonly report: { readonly reason: string; readonly message: string; readonly healsItself: boolean } | undefined
  /** The report is about a program that ends with exit code 0. */
  readonly endsInOrder: boolean
}

/** Health of a workload by its Deployment and its pods. Pure. */
export function podsHealth<Phase extends string>(
  { deployment, pods }: ObservedPods,
  words: HealthWords<Phase>,
  server?: InnerHealth,
): PodsHealth<Phase> {
  const live = pods.filter(isLive)
  const ready = live.filter(isReady).length
  const counts = { replicas: live.length, readyReplicas: ready, serverReadyReplicas: server?.readyPods ?? 0 }
  const wanted = deployment?.spec?.replicas ?? 1
  const is = (phase: Phase, reason: string, message: string): PodsHealth<Phase> => ({ ...counts, phase, reason, message })

  if (deployment === undefined)
    return is(words.pending, words.notReadyReason, `The Deployment of the ${words.role.name} does not exist yet.`)
  if (wanted === 0) {
    return {
      ...is(words.stopped, WorkloadReason.ScaledToZero, 'Scaled to 0 pods: set replicas to at least 1 to start it.'),
      readyReplicas: 0,
    }
  }
  const problem = graver(worstProblem(pods, words.role), server?.problem)
  // The pods stay ready for a while after the server behind them has gone: both must be ready.
  if (ready > 0 && (server === undefined || server.readyPods > 0)) {
    const more = [`${ready} of ${wanted} ${words.role.name} pods ready.`, problem?.message ?? server?.wait]
    return is(words.ready, words.readyReason, more.filter((part) => part !== undefined).join(' '))
  }
  if (problem !== undefined) {
    const phase = problem.fatal ? words.failed : words.pending
    // A program that ends in good order and is started again looks like one that crashes; the report tells them apart.
    const told = problem === server?.problem && server?.endsInOrder ? server.report : undefined
    return is(phase, told?.reason ?? problem.reason ?? words.notReadyReason, told?.message ?? problem.message)
  }
  if (server?.report !== undefined) {
    const { healsItself, reason, message } = server.report
    return is(healsItself ? words.pending : words.failed, reason, message)
  }
  const refused = creationProblem(deployment, live)
  if (refused !== undefined) return is(words.pending, WorkloadReason.PodCreationFailed, refused)
  return is(words.pending, words.notReadyReason, server?.wait ?? `Waiting: ${ready} of ${wanted} ${words.role.name} pods ready.`)
}

/** A problem that does not heal by itself comes before one that may. */
function graver(outer: PodProblem | undefined, inner: PodProblem | undefined): PodProblem | undefined {
  return inner?.fatal && !outer?.fatal ? inner : (outer ?? inner)
}

/** Why the Deployment makes no pods, in the words of its controller. */
function creationProblem({ metadata, status }: Deployment, live: readonly Pod[]): string | undefined {
  const failure = status?.conditions?.find(({ type, status: value }) => type === 'ReplicaFailure' && value === 'True')
  if (failure !== undefined && live.length === 0) {
    return `The Deployment ${metadata.name} cannot make pods: ${cut(failure.message ?? failure.reason ?? 'no reason given')}`
  }
  return undefined
}
