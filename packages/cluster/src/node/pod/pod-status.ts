import type { StatusCondition } from '@thv/kube/objects/builtin-kinds'
import { LISTENING_PORTS_CONDITION } from '@thv/kube/objects/listening-ports'
import type { PodPlace } from '../network/pod-network.ts'
import type { ContainerRole } from './container-life.ts'
import { type ContainerRecord, secondTime, type Terminated, terminatedOf } from './container-record.ts'
import type { ContainerSpec, NodePod } from './pod-spec.ts'

export interface StatusInput {
  readonly pod: NodePod
  readonly place: PodPlace | undefined
  readonly containers: readonly ContainerView[]
  /** Volumes and network are there. */
  readonly isPrepared: boolean
  /** The pod was ended for this reason, whatever its containers say. */
  readonly failure?: { readonly reason: string; readonly message: string } | undefined
  readonly now: number
}

export interface ContainerView {
  readonly spec: ContainerSpec
  readonly role: ContainerRole
  readonly record: ContainerRecord
}

export type PodPhase = 'Pending' | 'Running' | 'Succeeded' | 'Failed'

export interface NodePodStatus {
  phase: PodPhase
  reason: string | null
  message: string | null
  conditions: StatusCondition[]
  startTime: string
  hostIP?: string
  hostIPs?: { ip: string }[]
  podIP?: string
  podIPs?: { ip: string }[]
  initContainerStatuses?: object[]
  containerStatuses?: object[]
}

/** Status of a pod, as a kubelet would write it. */
export function podStatus(input: StatusInput): NodePodStatus {
  const { pod, place, containers, failure, now } = input
  const phase = failure ? 'Failed' : podPhase(input)
  const unsafe = containers.map(({ record }) => terminatedOf(record.state) ?? record.lastState.terminated).find(isUnsafeBind)
  const inits = containers.filter(({ role }) => role !== 'main').map((view) => containerStatus(view))
  const mains = containers.filter(({ role }) => role === 'main').map((view) => containerStatus(view))
  mains.sort((a, b) => (a.name < b.name ? -1 : 1))
  const startTime = typeof pod.status?.['startTime'] === 'string' ? pod.status['startTime'] : secondTime(now)
  const isRunning = containers.some(({ role, record }) => role === 'main' && 'running' in record.state)
  const why = failure ?? (isRunning ? undefined : unsafe)
  return {
    phase,
    reason: why?.reason ?? null,
    message: why?.message ?? null,
    conditions: podConditions(input, phase),
    startTime,
    ...(place && {
      hostIP: place.hostAddress,
      hostIPs: [{ ip: place.hostAddress }],
      podIP: place.address,
      podIPs: [{ ip: place.address }],
    }),
    ...(inits.length > 0 && { initContainerStatuses: inits }),
    containerStatuses: mains,
  }
}

function podPhase({ pod, containers }: Pick<StatusInput, 'pod' | 'containers'>): PodPhase {
  const policy = pod.spec.restartPolicy ?? 'Always'
  for (const { role, record } of containers) {
    const terminated = terminatedOf(record.state)
    if (role === 'init' && terminated?.exitCode !== 0) return terminated !== undefined && policy === 'Never' ? 'Failed' : 'Pending'
    if (role === 'sidecar' && !record.started && !hasStopped(record)) return 'Pending'
  }
  const mains = containers.filter(({ role }) => role === 'main').map(({ record }) => record)
  const stopped = mains.filter(hasStopped)
  const running = mains.filter(({ state }) => 'running' in state)
  if (stopped.length + running.length < mains.length) return 'Pending'
  const isServed = containers.some(({ role, record }) => role === 'sidecar' && 'running' in record.state)
  if (running.length > 0 || isServed || policy === 'Always') return 'Running'
  if (stopped.every(({ state }) => terminatedOf(state)?.exitCode === 0)) return 'Succeeded'
  return policy === 'Never' ? 'Failed' : 'Running'
}

/** It has run, and does not now. */
function hasStopped({ state, lastState }: ContainerRecord): boolean {
  return terminatedOf(state) !== undefined || ('waiting' in state && lastState.terminated !== undefined)
}

function isUnsafeBind(terminated: Terminated | undefined): terminated is Terminated & { message: string } {
  return terminated?.reason === 'UnsafeBind'
}

function containerStatus({ spec, record }: ContainerView) {
  const { state, lastState, ready, started, restartCount, imageId, containerId } = record
  return {
    name: spec.name,
    state,
    lastState,
    ready,
    started,
    restartCount,
    image: spec.image ?? '',
    imageID: imageId,
    ...(containerId !== '' && { containerID: containerId }),
  }
}

function podConditions({ pod, containers, isPrepared, now }: StatusInput, phase: PodPhase): StatusCondition[] {
  const over = phase === 'Succeeded' ? 'PodCompleted' : phase === 'Failed' ? 'PodFailed' : undefined
  const incomplete = containers.filter(({ role, record }) => role === 'init' && terminatedOf(record.state)?.exitCode !== 0)
  const incompleteSidecars = containers.filter(({ role, record }) => role === 'sidecar' && !record.started && !hasStopped(record))
  const notInitialized = [...incomplete, ...incompleteSidecars].map(({ spec }) => spec.name)
  const unready = containers.filter(({ role, record }) => role !== 'init' && !record.ready).map(({ spec }) => spec.name)
  const notReady: Reason | undefined = over
    ? { reason: over }
    : unready.length > 0
      ? { reason: 'ContainersNotReady', message: `containers with unready status: [${unready.join(' ')}]` }
      : undefined
  const uninitialized: Reason | undefined =
    notInitialized.length > 0
      ? { reason: 'ContainersNotInitialized', message: `containers with incomplete status: [${notInitialized.join(' ')}]` }
      : undefined
  const conditions = [
    condition('PodReadyToStartContainers', isPrepared && over === undefined),
    condition(
      'Initialized',
      uninitialized === undefined,
      uninitialized ?? (phase === 'Succeeded' ? { reason: 'PodCompleted' } : undefined),
    ),
    condition('Ready', notReady === undefined && gatesProblem(pod) === undefined, notReady ?? gatesProblem(pod)),
    condition('ContainersReady', notReady === undefined, notReady),
    condition('PodScheduled', true),
    ...otherPorts(containers),
  ]
  return conditions.map((one) => dated(one, pod.status?.conditions, now))
}

/** Only on pods that have once listened elsewhere than they declare. A condition cannot be taken back, so it becomes False. */
function otherPorts(containers: readonly ContainerView[]): StatusCondition[] {
  const known = containers.flatMap(({ record }) => (record.otherPorts === undefined ? [] : [record.otherPorts]))
  if (known.length === 0) return []
  const ports = known.flat()
  const why = { reason: 'OtherPorts', message: `The processes listen on ${ports.join(', ')}, not on a declared port.` }
  return [condition(LISTENING_PORTS_CONDITION, ports.length > 0, ports.length > 0 ? why : { reason: 'DeclaredPorts' })]
}

interface Reason {
  readonly reason: string
  readonly message?: string
}

function condition(type: string, holds: boolean, why?: Reason): StatusCondition {
  return { type, status: holds ? 'True' : 'False', ...why }
}

function gatesProblem(pod: NodePod): Reason | undefined {
  const missing = (pod.spec.readinessGates ?? []).filter(
    ({ conditionType }) => pod.status?.conditions?.find(({ type }) => type === conditionType)?.status !== 'True',
  )
  if (missing.length === 0) return undefined
  const types = missing.map(({ conditionType }) => `"${conditionType}"`).join(', ')
  return { reason: 'ReadinessGatesNotReady', message: `the status of pod readiness gate ${types} is not "True"` }
}

function dated(one: StatusCondition, before: readonly StatusCondition[] | undefined, now: number): StatusCondition {
  const old = before?.find(({ type }) => type === one.type)
  const same = old?.status === one.status ? old.lastTransitionTime : undefined
  return { ...one, lastTransitionTime: same ?? secondTime(now) }
}
