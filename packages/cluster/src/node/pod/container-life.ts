import { randomBytes } from 'node:crypto'
import { mkdir, rm, writeFile } from 'node:fs/promises'
import { constants } from 'node:os'
import { join } from 'node:path'
import { formatDuration } from '@thv/kernel/duration'
import { errorMessage } from '@thv/kernel/errors'
import type { ImageProgram } from '../images/image-resolver.ts'
import { ContainerLog } from '../logs/container-log.ts'
import { ContainerOutput } from '../logs/container-output.ts'
import { logFolder } from '../logs/log-folder.ts'
import { runProbes } from '../probes/container-probes.ts'
import { type HandlerEnv, runHandler } from '../probes/run-handler.ts'
import { type GuardedProcess, startGuarded } from '../process/guarded-process.ts'
import { MountError } from '../volumes/mount-error.ts'
import { type Bind, watchBinds } from './bind-check.ts'
import { ConfigError } from './config-error.ts'
import { type ContainerSurroundings, containerCommand, containerSurroundings, StartProblem } from './container-command.ts'
import { containerEnvironment } from './container-environment.ts'
import { type ContainerRecord, firstRecord, secondTime, type Terminated, terminatedOf } from './container-record.ts'
import { CrashBackoff } from './crash-backoff.ts'
import { execIn } from './exec-in.ts'
import { objectSource } from './object-source.ts'
import type { PodContext } from './pod-context.ts'
import { type ContainerSpec, type HandlerSpec, isSidecar, podText } from './pod-spec.ts'
import { pullImage } from './pull-image.ts'

export type ContainerRole = 'init' | 'sidecar' | 'main'

/** One run of a container: its process and what hangs on it. */
export interface ContainerRun {
  readonly process: GuardedProcess
  readonly output: ContainerOutput
  readonly log: ContainerLog
}

/** A container of a pod, through all its runs. */
export class ContainerLife {
  readonly spec: ContainerSpec
  readonly role: ContainerRole
  readonly record: ContainerRecord
  readonly #context: PodContext
  readonly #stop = new AbortController()
  readonly #backoff: CrashBackoff
  #run: ContainerRun | undefined
  #running: Promise<void> | undefined
  #failure: Bind | undefined
  #kill: { due: number; cancel(): void } | undefined
  #ending: Promise<void> | undefined
  #stdinTaken = false
  #startedWaiters: (() => void)[] = []

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
      if (!this.#stop.signal.aborted) this.#report(error)
    })
    return this.#running
  }

  /** Resolves when it has started as its startup probe sees it, or will not start any more. */
  async started(): Promise<void> {
    const started = new Promise<void>((resolve) => {
      if (this.record.started) resolve()
      else this.#startedWaiters.push(resolve)
    })
    await Promise.race([started, this.run()])
  }

  /** Ends it for good, within the grace period. May be called again with a shorter one. */
  async terminate(graceMs: number): Promise<void> {
    this.#stop.abort()
    if (this.#run) await this.#end(graceMs, `Stopping container ${this.spec.name}`)
    await this.#running
  }

  /** True for the first who asks in this run. */
  takeStdin(): boolean {
    const first = !this.#stdinTaken
    this.#stdinTaken = true
    return first
  }

  async #live(): Promise<void> {
    const { signal } = this.#stop
    if (terminatedOf(this.record.state)) return // it has done its work before the node was started again
    for (;;) {
      const program = await pullImage(this.spec, this.record, this.#context, signal)
      await this.#runOnce(program, signal)
      if (signal.aborted || !this.#restartsAfter(terminatedOf(this.record.state)?.exitCode ?? 0)) return
      await this.#backOff(signal)
      this.record.restartCount++
    }
  }

  #restartsAfter(exitCode: number): boolean {
    if (this.role === 'sidecar') return true
    const policy = this.#context.pod.spec.restartPolicy ?? 'Always'
    if (policy === 'Always' && this.role === 'main') return true
    return policy !== 'Never' && exitCode !== 0
  }

  async #backOff(signal: AbortSignal): Promise<void> {
    const { env, pod } = this.#context
    const terminated = terminatedOf(this.record.state)
    const delay = this.#backoff.next()
    this.record.lastState = terminated ? { terminated } : {}
    if (delay === 0) return
    const { name } = this.spec
    const message = `back-off ${formatDuration(delay)} restarting failed container=${name} pod=${podText(pod)}`
    this.#set({ waiting: { reason: 'CrashLoopBackOff', message } })
    this.#context.event('Warning', 'BackOff', `Back-off restarting failed container ${name} in pod ${podText(pod)}`)
    await env.clock.sleep(delay, signal)
  }

  /** Ends with the state `terminated`. */
  async #runOnce(program: ImageProgram, signal: AbortSignal): Promise<void> {
    const { env } = this.#context
    const containerId = randomBytes(32).toString('hex')
    const mark = `${env.mark}${containerId}.`
    const around = await this.#prepare(program, signal)
    this.record.containerId = `thv://${containerId}`
    let run: ContainerRun
    try {
      run = await this.#start(program, around, mark)
    } catch (error) {
      this.#startError(error)
      return
    }
    const startedAt = secondTime(env.clock.now())
    this.#set({ running: { startedAt } })
    this.#context.event('Normal', 'Started', `Started container ${this.spec.name}`)
    const watching = new AbortController()
    const over = this.#watch(run, { around, mark, signal: watching.signal }).catch(this.#report)
    if (signal.aborted) void this.#end(0, `Stopping container ${this.spec.name}`) // it was stopped while it started
    const end = await run.process.ended
    watching.abort()
    await this.#drain(run)
    await over
    this.#run = undefined
    this.#kill?.cancel()
    this.#kill = undefined
    this.#ending = undefined
    await rm(this.#processFile(), { force: true })
    const failure = this.#failure
    this.#failure = undefined
    this.#terminated({
      exitCode: end.exitCode,
      reason: failure?.reason ?? (end.exitCode === 0 ? 'Completed' : 'Error'),
      ...(failure && { message: failure.message }),
      startedAt,
      finishedAt: secondTime(env.clock.now()),
      containerID: this.record.containerId,
    })
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
        const message =
          error instanceof MountError ? `failed to prepare volume ${JSON.stringify(error.volume)}: ${error.message}` : errorMessage(error)
        this.#set({ waiting: { reason: 'CreateContainerConfigError', message } })
        this.#context.event('Warning', 'Failed', `Error: ${message}`)
        await this.#context.waitForChange(env.timings.retry, signal)
      }
    }
  }

  async #start(program: ImageProgram, around: ContainerSurroundings, mark: string): Promise<ContainerRun> {
    const { env, pod } = this.#context
    const { file, args } = containerCommand(this.spec, program, around)
    const log = await ContainerLog.open({
      folder: logFolder(env.folder, pod.metadata.uid, this.spec.name),
      run: this.record.restartCount,
      clock: env.clock,
      ...(env.logLimits && { limits: env.logLimits }),
      onError: (error) => env.onError(error, pod.metadata),
    })
    try {
      this.#context.event('Normal', 'Created', `Created container: ${this.spec.name}`)
      const process = await startGuarded({ file, args, env: around.env, cwd: around.cwd, stdin: this.spec.stdin === true, mark })
      const output = new ContainerOutput({ stdout: process.stdout, stderr: process.stderr }, log)
      log.onChange(() => output.flow())
      this.#stdinTaken = false
      this.#run = { process, output, log }
      await this.#writeDown(process).catch(this.#report) // its guard and its mark are there besides
      return this.#run
    } catch (error) {
      await log.close()
      throw error
    }
  }

  async #writeDown({ pid, start }: GuardedProcess): Promise<void> {
    await mkdir(join(this.#context.folder, 'processes'), { recursive: true, mode: 0o700 })
    await writeFile(this.#processFile(), JSON.stringify({ pid, start }), { mode: 0o600 })
  }

  readonly #report = (error: unknown): void => this.#context.env.onError(error, this.#context.pod.metadata)

  #processFile(): string {
    return join(this.#context.folder, 'processes', `${this.spec.name}.json`)
  }

  #startError(error: unknown): void {
    const message = error instanceof ConfigError || error instanceof StartProblem ? error.message : errorMessage(error)
    const text = `failed to start container ${JSON.stringify(this.spec.name)}: ${message}`
    this.#context.event('Warning', 'Failed', `Error: ${text}`)
    const now = secondTime(this.#context.env.clock.now())
    this.#terminated({
      exitCode: 128,
      reason: 'StartError',
      message: text,
      startedAt: now,
      finishedAt: now,
      containerID: this.record.containerId,
    })
  }

  /** Hooks, probes and the look at its sockets, until the signal aborts. */
  async #watch(run: ContainerRun, at: { around: ContainerSurroundings; mark: string; signal: AbortSignal }): Promise<void> {
    const { env, place, pod } = this.#context
    const { signal } = at
    const handler = this.#handlerEnv(at.around, at.mark)
    this.#preStop =
      this.spec.lifecycle?.preStop && ((limit) => this.#hook('PreStop', this.spec.lifecycle?.preStop ?? {}, { handler, signal: limit }))
    const { postStart } = this.spec.lifecycle ?? {}
    if (postStart && !(await this.#hook('PostStart', postStart, { handler, signal }))) {
      await this.#end(this.#grace(), `FailedPostStartHook`)
      return
    }
    const binds = watchBinds({
      network: env.network,
      pod,
      groupId: run.process.pid,
      address: place.address,
      clock: env.clock,
      intervalMs: env.timings.bindCheck,
      signal,
      onError: this.#report,
      onUnsafe: (bind) => {
        this.#failure = bind
        this.#context.event('Warning', bind.reason, bind.message)
        run.process.kill()
      },
    })
    const probes = runProbes({
      container: this.spec,
      handler,
      clock: env.clock,
      signal,
      hooks: {
        onStarted: () => {
          this.record.started = true
          for (const resolve of this.#startedWaiters.splice(0)) resolve()
          this.#context.changed()
        },
        onReady: (ready) => void this.#becomeReady(ready, binds.check, signal).catch(this.#report),
        onFailure: (kind, output) => this.#context.event('Warning', 'Unhealthy', `${kind} probe failed: ${output}`),
        onDead: (kind, probe) => {
          const grace = (probe.terminationGracePeriodSeconds ?? this.#grace() / 1_000) * 1_000
          void this.#end(grace, `Container ${this.spec.name} failed ${kind.toLowerCase()} probe, will be restarted`)
        },
      },
    })
    await Promise.all([binds.done, probes])
  }

  async #becomeReady(ready: boolean, check: () => Promise<boolean>, signal: AbortSignal): Promise<void> {
    if (ready && !(await check())) return
    if (signal.aborted || this.record.ready === ready) return
    this.record.ready = ready
    this.#context.changed()
  }

  #preStop: ((limit: AbortSignal) => Promise<boolean>) | undefined

  async #hook(kind: 'PostStart' | 'PreStop', handler: HandlerSpec, at: { handler: HandlerEnv; signal: AbortSignal }): Promise<boolean> {
    if (handler.sleep) {
      await this.#context.env.clock.sleep(handler.sleep.seconds * 1_000, at.signal).catch(() => undefined) // cut short by the grace period
      return true
    }
    const result = await runHandler(handler, at.handler, at.signal)
    if (!result.ok && !(kind === 'PostStart' && at.signal.aborted))
      this.#context.event('Warning', `Failed${kind}Hook`, `${kind}Hook failed: ${result.output}`)
    return result.ok
  }

  #handlerEnv(around: ContainerSurroundings, mark: string): HandlerEnv {
    return {
      container: this.spec,
      address: this.#context.place.address,
      exec: (command, signal) => execIn(around, { command, mark, signal }),
    }
  }

  #grace(): number {
    return (this.#context.pod.spec.terminationGracePeriodSeconds ?? 30) * 1_000
  }

  /** The hook, then SIGTERM, then SIGKILL when the grace period is over. Resolves when the process has ended. */
  async #end(graceMs: number, why: string): Promise<void> {
    const run = this.#run
    if (run === undefined) return
    this.#killAfter(run, graceMs)
    this.#ending ??= this.#endSoftly(run, why)
    await run.process.ended
  }

  async #endSoftly(run: ContainerRun, why: string): Promise<void> {
    this.#context.event('Normal', 'Killing', why)
    const limit = new AbortController()
    void run.process.ended.then(() => limit.abort())
    if (this.#preStop) await this.#preStop(limit.signal)
    const { stopSignal = '' } = this.spec.lifecycle ?? {}
    run.process.signal(stopSignal in constants.signals ? (stopSignal as NodeJS.Signals) : 'SIGTERM')
  }

  #killAfter(run: ContainerRun, ms: number): void {
    const { clock } = this.#context.env
    const due = clock.monotonic() + ms
    if (this.#kill && this.#kill.due <= due) return
    this.#kill?.cancel()
    const timer = clock.setTimer(ms, () => run.process.kill())
    this.#kill = { due, cancel: () => timer.cancel() }
  }

  /** Usually at once. A reader that is slow, or somebody who holds the pipe, gets some time without holding up the container. */
  async #drain({ output, log }: ContainerRun): Promise<void> {
    const { clock, timings } = this.#context.env
    const drained = output.ended.then(() => log.close())
    const late = clock.setTimer(timings.drain, () => output.destroy())
    void drained.finally(() => late.cancel())
    const short = new AbortController()
    await Promise.race([drained, clock.sleep(Math.min(timings.drain, SHORT_DRAIN_MS), short.signal).catch(() => undefined)])
    short.abort()
  }

  #terminated(terminated: Terminated): void {
    this.#set({ terminated })
  }

  #set(state: ContainerRecord['state']): void {
    this.record.state = state
    if (!('running' in state)) {
      this.record.ready = this.role === 'init' && terminatedOf(state)?.exitCode === 0
      this.record.started = false
    }
    this.#context.changed()
  }
}

const SHORT_DRAIN_MS = 500
