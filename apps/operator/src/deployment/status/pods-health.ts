import type { Deployment, Pod, StatefulSet } from '@thv/kube'
import { MCPRemoteProxyPhase, MCPRemoteProxyReason } from '@thv/resources/kinds/mcp-remote-proxy/constants'
import { MCPServerPhase, MCPServerReason } from '@thv/resources/kinds/mcp-server/constants'
import { WorkloadReason } from '@thv/resources/shared/workload-conditions'
import { RunnerReason } from '@thv/runconfig/runner-events'
import { cut, isLive, isReady, type PodProblem, worstProblem } from './pod-problem.ts'
import type { RunnerReport } from './runner-report.ts'

export interface ObservedPods {
  readonly deployment: Deployment | undefined
  readonly proxyPods: readonly Pod[]
}

export interface ObservedServer extends ObservedPods {
  readonly statefulSet: StatefulSet | undefined
  readonly serverPods: readonly Pod[]
  readonly report?: RunnerReport | undefined
}

export interface PodsHealth<Phase extends string> {
  readonly phase: Phase
  /** Of condition `Ready`, which is True when `phase` says so. */
  readonly reason: string
  /** Says what to do next when something is wrong. */
  readonly message: string
  /** Proxy pods that exist, and those of them that are ready. */
  readonly replicas: number
  readonly readyReplicas: number
  /** Of the MCP server; 0 for a proxy of a remote one. */
  readonly serverReadyReplicas: number
}

export type ServerPhase = (typeof MCPServerPhase)[keyof typeof MCPServerPhase]
export type RemoteProxyPhase = (typeof MCPRemoteProxyPhase)[keyof typeof MCPRemoteProxyPhase]

/** Which words a kind has for the states that both have. */
interface Words<Phase extends string> {
  readonly pending: Phase
  readonly ready: Phase
  readonly failed: Phase
  readonly stopped: Phase
  readonly readyReason: string
  readonly notReadyReason: string
}

const SERVER: Words<ServerPhase> = {
  pending: MCPServerPhase.Pending,
  ready: MCPServerPhase.Running,
  failed: MCPServerPhase.Failed,
  stopped: MCPServerPhase.Stopped,
  readyReason: MCPServerReason.Ready,
  notReadyReason: MCPServerReason.NotReady,
}

const REMOTE: Words<RemoteProxyPhase> = {
  pending: MCPRemoteProxyPhase.Pending,
  ready: MCPRemoteProxyPhase.Ready,
  failed: MCPRemoteProxyPhase.Failed,
  stopped: MCPRemoteProxyPhase.Pending,
  readyReason: MCPRemoteProxyReason.DeploymentReady,
  notReadyReason: MCPRemoteProxyReason.DeploymentNotReady,
}

/** How an MCPServer is, by what its proxy and the server behind it say of themselves. Pure. */
export function mcpServerHealth(observed: ObservedServer): PodsHealth<ServerPhase> {
  const server = {
    problem: worstProblem(observed.serverPods, 'MCP'),
    wait: waitForServer(observed.statefulSet, observed.serverPods),
    readyPods: observed.serverPods.filter(isReady).length,
    report: observed.report,
    endsInOrder: observed.report?.reason === RunnerReason.ServerEnded && observed.serverPods.some(hasEndedInOrder),
  }
  return health(observed, SERVER, server)
}

export function mcpRemoteProxyHealth(observed: ObservedPods): PodsHealth<RemoteProxyPhase> {
  return health(observed, REMOTE, undefined)
}

interface ServerState {
  readonly problem: PodProblem | undefined
  readonly wait: string | undefined
  readonly readyPods: number
  readonly report: RunnerReport | undefined
  /** The report is about a program that ends with exit code 0. */
  readonly endsInOrder: boolean
}

function hasEndedInOrder({ status }: Pod): boolean {
  return status?.containerStatuses?.some(({ state, lastState }) => (state?.terminated ?? lastState?.terminated)?.exitCode === 0) === true
}

function health<Phase extends string>(
  { deployment, proxyPods }: ObservedPods,
  words: Words<Phase>,
  server: ServerState | undefined,
): PodsHealth<Phase> {
  const live = proxyPods.filter(isLive)
  const ready = live.filter(isReady).length
  const counts = { replicas: live.length, readyReplicas: ready, serverReadyReplicas: server?.readyPods ?? 0 }
  const wanted = deployment?.spec?.replicas ?? 1
  const is = (phase: Phase, reason: string, message: string): PodsHealth<Phase> => ({ ...counts, phase, reason, message })

  if (deployment === undefined) return is(words.pending, words.notReadyReason, 'The Deployment of the proxy is not there yet.')
  if (wanted === 0) {
    return {
      ...is(words.stopped, WorkloadReason.ScaledToZero, 'Scaled to 0 pods: set replicas to at least 1 to start it.'),
      readyReplicas: 0,
    }
  }
  const problem = graver(worstProblem(proxyPods, 'proxy'), server?.problem)
  // A proxy stays ready for a while after the server behind it has gone: the pods of both must say so.
  if (ready > 0 && (server === undefined || server.readyPods > 0)) {
    const more = [`${ready} of ${wanted} proxy pods ready.`, problem?.message ?? server?.wait]
    return is(words.ready, words.readyReason, more.filter((part) => part !== undefined).join(' '))
  }
  if (problem !== undefined) {
    const phase = problem.fatal ? words.failed : words.pending
    // A program that ends in good order and is started again looks like one that crashes; its runner knows better.
    const told = problem === server?.problem && server?.endsInOrder ? server.report : undefined
    return is(phase, told?.reason ?? problem.reason ?? words.notReadyReason, told?.message ?? problem.message)
  }
  if (server?.report !== undefined)
    return is(HEALS_ITSELF.has(server.report.reason) ? words.pending : words.failed, server.report.reason, server.report.message)
  const refused = creationProblem(deployment, live)
  if (refused !== undefined) return is(words.pending, WorkloadReason.PodCreationFailed, refused)
  return is(words.pending, words.notReadyReason, server?.wait ?? `Waiting: ${ready} of ${wanted} proxy pods ready.`)
}

/** A server that takes long to start looks like this for a while. */
const HEALS_ITSELF: ReadonlySet<string> = new Set([
  RunnerReason.BackendPortClosed,
  RunnerReason.HandshakeTimedOut,
  RunnerReason.ServerEnded,
])

/** What will not heal by itself, before what may. */
function graver(proxy: PodProblem | undefined, server: PodProblem | undefined): PodProblem | undefined {
  return server?.fatal && !proxy?.fatal ? server : (proxy ?? server)
}

/** Why the Deployment makes no pods, in the words of its controller. */
function creationProblem({ metadata, status }: Deployment, live: readonly Pod[]): string | undefined {
  const failure = status?.conditions?.find(({ type, status: value }) => type === 'ReplicaFailure' && value === 'True')
  if (failure !== undefined && live.length === 0) {
    return `The Deployment ${metadata.name} cannot make pods: ${cut(failure.message ?? failure.reason ?? 'no reason given')}`
  }
  return undefined
}

/** What is awaited of the StatefulSet that the runner makes. It has no condition of its own for pods that were refused. */
function waitForServer(statefulSet: StatefulSet | undefined, pods: readonly Pod[]): string | undefined {
  if (statefulSet === undefined) return 'Waiting for the proxy to make the StatefulSet of the MCP server.'
  const name = statefulSet.metadata.name
  const wanted = statefulSet.spec?.replicas ?? 1
  if (wanted === 0) return `The StatefulSet ${name} is scaled to 0 pods: set spec.backendReplicas to at least 1, or scale it up.`
  const ready = pods.filter(isReady).length
  if (pods.every((pod) => !isLive(pod))) {
    return `Waiting for the pods of StatefulSet ${name}. If none appears, kubectl describe statefulset ${name} says why.`
  }
  return ready < wanted ? `Waiting: ${ready} of ${wanted} MCP server pods ready.` : undefined
}
