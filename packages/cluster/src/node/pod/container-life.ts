import { randomBytes } from 'node:crypto'
import { join } from 'node:path'
import { formatDuration } from '@thv/kernel/duration'
import { errorMessage } from '@thv/kernel/errors'
import type { ImageProgram } from '../images/image-resolver.ts'
import { objectSource } from '../values/object-source.ts'
import { MountError } from '../volumes/mount-error.ts'
import { allowsUnsafeBind, UNSAFE_BIND } from './bind-check.ts'
import { ConfigError } from './config-error.ts'
import { type ContainerSurroundings, containerCommand, containerSurroundings, StartProblem } from './container-command.ts'
import { containerEnvironment } from './container-environment.ts'
import { type ContainerRecord, firstRecord, secondTime, type Terminated, terminatedOf } from './container-record.ts'
import { ContainerRun } from './container-run.ts'
import { CrashBackoff } from './crash-backoff.ts'
import type { PodContext } from './pod-context.ts'
import { type ContainerSpec, isSidecar, podText } from './pod-spec.ts'
import { pullImage } from './pull-image.ts'

export type ContainerRole = 'init' | 'sidecar' | 'main'

/** A container of a pod, through all its runs. */
export class ContainerLife {
  readonly spec: ContainerSpec
  readonly role: ContainerRole
  readonly record: ContainerRecord
  readonly #context: PodContext
  readonly #stop = new AbortController()
  readonly #backoff: CrashBackoff
  readonly #waiters: (() => void)[] = []
  #run: ContainerRun | undefined
  #running: Promise<void> | undefined

  constructor(spec: ContainerSpec, isInit: boolean, context: PodContext) {
    this.spec = spec
    this.role = isInit ? (isSidecar(spec) ? 'sidecar' : 'init') : 'main'
    this.#context = context
    this.#backoff = new CrashBackoff(context.env.clock, context.env.timings)
    const { status, spec: podSpec } = context.pod
    const before = (isInit ? status?.initContainerStatuses : status?.containerStatuses)?.find(({ name }) => name === spec.name)
    const waiting = (podSpec.initContainers?.length ?? 0) > 0 ? 'PodInitializing' : 'ContainerCreating'
    const isKept = ({ exitCode }: Terminated) => this.role === 'main' && !this.#restartsAfter(exitCode)
    this.record = firstRecord(before as Parameters<typeof firstRecord>[0], waiting, isKept)
  }

  /** Undefined while no process runs. */
  get current(): ContainerRun | undefined {
    return this.#run
  }

  /** It has ended and will not be started again. */
  get failed(): boolean {
    return (terminatedOf(this.record.state)?.exitCode ?? 0) !== 0
  }

  /** Resolves when it will not be started again. Never rejects. */
  run(): Promise<void> {
    this.#running ??= this.#live().catch((error: unknown) => {
      if (!this.#stop.signal.aborted) this.#context.env.onError(error, this.#context.pod.metadata)
    })
    return this.#running
  }

  /** Resolves when it has started as its startup probe sees it, or will not start any more. */
  async started(): Promise<void> {
    const started = new Promise<void>((resolve) => {
      if (this.record.started) resolve()
      else this.#waiters.push(resolve)
    })
    await Promise.race([started, this.run()])
  }

  /** Ends it for good, within the grace period. May be called again with a shorter one. */
  async terminate(graceMs: number): Promise<void> {
    this.#stop.abort()
    await this.#run?.end(graceMs, `Stopping container ${this.spec.name}`)
    await this.#running
  }

  async #live(): Promise<void> {
    const { signal } = this.#stop
    if (terminatedOf(this.record.state)) return // it has done its work before the node was started again
    for (;;) {
      const program = await pullImage(this.spec, this.record, this.#context, signal)
      const around = await this.#prepare(program, signal)
      const end = await this.#runOnce(program, around)
      this.#set({ terminated: end })
      if (signal.aborted || !this.#restartsAfter(end.exitCode)) return
      if (end.reason === UNSAFE_BIND) await this.#stayDown(end, signal)
      else await this.#backOff(end, signal)
      this.record.restartCount++
    }
  }

  #restartsAfter(exitCode: number): boolean {
    if (this.role === 'sidecar') return true
    const policy = this.#context.pod.spec.restartPolicy ?? 'Always'
    if (policy === 'Always' && this.role === 'main') return true
    return policy !== 'Never' && exitCode !== 0
  }

  /** Each start would be open to the network again until it is found out, so there is none before the pod allows it. */
  async #stayDown(end: Terminated, signal: AbortSignal): Promise<void> {
    const { env } = this.#context
    this.record.lastState = { terminated: end }
    this.#set({ waiting: { reason: UNSAFE_BIND, message: end.message ?? '' } })
    while (!allowsUnsafeBind(this.#context.pod)) await this.#context.waitForChange(env.timings.retry, signal)
  }

  async #backOff(end: Terminated, signal: AbortSignal): Promise<void> {
    const { env, pod } = this.#context
    const delay = this.#backoff.next()
    this.record.lastState = { terminated: end }
    if (delay === 0) return
    const { name } = this.spec
    const message = `back-off ${formatDuration(delay)} restarting failed container=${name} pod=${podText(pod)}`
    this.#set({ waiting: { reason: 'CrashLoopBackOff', message } })
    this.#context.event('Warning', 'BackOff', `Back-off restarting failed container ${name} in pod ${podText(pod)}`)
    await env.clock.sleep(delay, signal)
  }

  /** Waits until all is there that the spec asks for. */
  async #prepare(program: ImageProgram, signal: AbortSignal): Promise<ContainerSurroundings> {
    const { env, pod, place, volumes, folder } = this.#context
    for (;;) {
      try {
        const objects = objectSource(env.client, pod.metadata.namespace, signal)
        const wanted = await containerEnvironment({ pod: this.#context.pod, container: this.spec, place, objects, podEnv: env.podEnv })
        await volumes.mount(pod, this.spec, wanted)
        const [root, home] = [volumes.rootOf(this.spec.name), join(folder, 'home', this.spec.name)]
        return await containerSurroundings({ container: this.spec, program, podPlace: place, wanted, root, home })
      } catch (error) {
        signal.throwIfAborted()
        const volume = error instanceof MountError ? `failed to prepare volume ${JSON.stringify(error.volume)}: ` : ''
        const message = `${volume}${errorMessage(error)}`
        this.#set({ waiting: { reason: 'CreateContainerConfigError', message } })
        this.#context.event('Warning', 'Failed', `Error: ${message}`)
        await this.#context.waitForChange(env.timings.retry, signal)
      }
    }
  }

  async #runOnce(program: ImageProgram, around: ContainerSurroundings): Promise<Terminated> {
    const { env } = this.#context
    const id = randomBytes(32).toString('hex')
    this.record.containerId = `thv://${id}`
    try {
      this.#run = await ContainerRun.start({
        spec: this.spec,
        context: this.#context,
        around,
        command: containerCommand(this.spec, program, around),
        mark: `${env.mark}${id}.`,
        number: this.record.restartCount,
        onStarted: () => this.#noteStarted(),
        onReady: (ready) => this.#noteReady(ready),
        onOtherPorts: (ports) => this.#noteOtherPorts(ports),
      })
    } catch (error) {
      return this.#startError(error)
    }
    const startedAt = secondTime(env.clock.now())
    this.#set({ running: { startedAt } })
    this.#context.event('Normal', 'Started', `Started container ${this.spec.name}`)
    // It was stopped while it started, when there was nothing yet to stop.
    if (this.#stop.signal.aborted) void this.#run.end(0, `Stopping container ${this.spec.name}`)
    const { exitCode, reason, message } = await this.#run.ended
    this.#run = undefined
    const finishedAt = secondTime(env.clock.now())
    return { exitCode, reason, ...(message !== '' && { message }), startedAt, finishedAt, containerID: this.record.containerId }
  }

  #startError(error: unknown): Terminated {
    const why = error instanceof ConfigError || error instanceof StartProblem ? error.message : errorMessage(error)
    const message = `failed to start container ${JSON.stringify(this.spec.name)}: ${why}`
    this.#context.event('Warning', 'Failed', `Error: ${message}`)
    const now = secondTime(this.#context.env.clock.now())
    return { exitCode: 128, reason: 'StartError', message, startedAt: now, finishedAt: now, containerID: this.record.containerId }
  }

  #noteStarted(): void {
    this.record.started = true
    for (const resolve of this.#waiters.splice(0)) resolve()
    this.#context.changed()
  }

  #noteReady(ready: boolean): void {
    if (this.record.ready === ready) return
    this.record.ready = ready
    this.#context.changed()
  }

  #noteOtherPorts(ports: readonly number[]): void {
    this.record.otherPorts = ports
    this.#context.changed()
  }

  #set(state: ContainerRecord['state']): void {
    this.record.state = state
    if (!('running' in state)) {
      if (this.record.otherPorts !== undefined) this.record.otherPorts = []
      this.record.ready = this.role === 'init' && terminatedOf(state)?.exitCode === 0
      this.record.started = false
    }
    this.#context.changed()
  }
}
