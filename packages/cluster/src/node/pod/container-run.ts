import { mkdir, rm, writeFile } from 'node:fs/promises'
import { constants } from 'node:os'
import { join } from 'node:path'
import { ContainerLog } from '../logs/container-log.ts'
import { ContainerOutput } from '../logs/container-output.ts'
import { logFolder } from '../logs/log-folder.ts'
import { readLog } from '../logs/read-log.ts'
import { runProbes } from '../probes/container-probes.ts'
import { type HandlerEnv, type HandlerResult, runHandler } from '../probes/run-handler.ts'
import { type GuardedProcess, startGuarded } from '../process/guarded-process.ts'
import { type Bind, watchBinds } from './bind-check.ts'
import type { ContainerCommand, ContainerSurroundings } from './container-command.ts'
import { execIn } from './exec-in.ts'
import type { PodContext } from './pod-context.ts'
import { type ContainerSpec, DEFAULT_GRACE_SECONDS, type HandlerSpec, type ProbeSpec } from './pod-spec.ts'
import { watchPorts } from './port-watch.ts'

export interface ContainerRunInput {
  readonly spec: ContainerSpec
  readonly context: PodContext
  readonly around: ContainerSurroundings
  readonly command: ContainerCommand
  /** Of its processes, and of no others. */
  readonly mark: string
  /** Which run of the container, for its log. */
  readonly number: number
  /** The startup probe has succeeded, or there is none. */
  readonly onStarted: () => void
  readonly onReady: (ready: boolean) => void
  /** Ports that it listens on instead of the declared ones. */
  readonly onOtherPorts: (ports: readonly number[]) => void
}

export interface RunEnd {
  readonly exitCode: number
  readonly reason: string
  readonly message: string
}

/** One run of a container: its process and all that hangs on it. */
export class ContainerRun {
  readonly process: GuardedProcess
  readonly output: ContainerOutput
  readonly log: ContainerLog
  /** Never rejects. */
  readonly ended: Promise<RunEnd>
  readonly #input: ContainerRunInput
  readonly #handler: HandlerEnv
  #stdinTaken = false
  #failure: Bind | undefined
  #kill: { readonly due: number; cancel(): void } | undefined
  #ending: Promise<void> | undefined

  private constructor(input: ContainerRunInput, process: GuardedProcess, log: ContainerLog) {
    const { spec, context, around, mark } = input
    this.#input = input
    this.process = process
    this.log = log
    this.output = new ContainerOutput({ stdout: process.stdout, stderr: process.stderr }, log)
    log.onChange(() => this.output.flow())
    const exec: HandlerEnv['exec'] = (command, signal) => execIn(around, { command, mark, signal })
    this.#handler = { container: spec, address: context.place.address, exec }
    this.ended = this.#live()
  }

  /** Rejects when the program cannot be started. */
  static async start(input: ContainerRunInput): Promise<ContainerRun> {
    const { spec, context, around, command, mark, number: run } = input
    const { env, pod } = context
    const log = await ContainerLog.open({
      folder: logFolder(env.folder, pod.metadata.uid, spec.name),
      run,
      clock: env.clock,
      ...(env.logLimits && { limits: env.logLimits }),
      onError: (error) => env.onError(error, pod.metadata),
    })
    try {
      context.event('Normal', 'Created', `Created container: ${spec.name}`)
      const { file, args, host } = command
      const program = { file, args, env: around.env, cwd: around.cwd, stdin: spec.stdin === true, mark }
      const process = host === undefined ? await startGuarded(program) : await env.sharedProcesses.start(program, host)
      return new ContainerRun(input, process, log)
    } catch (error) {
      await log.close()
      throw error
    }
  }

  /** True for the first who asks. */
  takeStdin(): boolean {
    const isFirst = !this.#stdinTaken
    this.#stdinTaken = true
    return isFirst
  }

  /** The hook, then SIGTERM, then SIGKILL when the grace period is over. May be called again with a shorter one. */
  async end(graceMs: number, why: string): Promise<void> {
    this.#killAfter(graceMs)
    this.#ending ??= this.#endSoftly(why)
    await this.process.ended
  }

  async #live(): Promise<RunEnd> {
    const watching = new AbortController()
    await this.#writeDown().catch(this.#report) // its guard and its mark are there besides
    const watched = this.#watch(watching.signal).catch(this.#report)
    const { exitCode } = await this.process.ended
    watching.abort()
    this.#kill?.cancel()
    await this.#drain()
    await watched
    await rm(this.#file(), { force: true }).catch(this.#report)
    const reason = this.#failure?.reason ?? (exitCode === 0 ? 'Completed' : 'Error')
    return { exitCode, reason, message: this.#failure?.message ?? (exitCode === 0 ? '' : await this.#lastWords()) }
  }

  /** For the next node, should this one die together with the guard. */
  async #writeDown(): Promise<void> {
    const { pid, start } = this.process
    await mkdir(join(this.#input.context.folder, 'processes'), { recursive: true, mode: 0o700 })
    await writeFile(this.#file(), JSON.stringify({ pid, start }), { mode: 0o600 })
  }

  #file(): string {
    return join(this.#input.context.folder, 'processes', `${this.#input.spec.name}.json`)
  }

  /** Hooks, probes and the look at its sockets, until the signal aborts. */
  async #watch(signal: AbortSignal): Promise<void> {
    const { spec, context, onStarted, onReady, onOtherPorts } = this.#input
    const { clock, network, timings } = context.env
    const { postStart } = spec.lifecycle ?? {}
    if (postStart && !(await this.#hook('PostStart', postStart, signal)).ok) {
      if (!signal.aborted) await this.end(this.#grace(), `Container ${spec.name} failed its PostStart hook`)
      return
    }
    const looking = {
      network,
      groupId: this.process.pid,
      address: context.place.address,
      clock,
      intervalMs: timings.bindCheck,
      signal,
      onError: this.#report,
    }
    const binds = watchBinds({ ...looking, pod: context.pod, onUnsafe: (bind) => this.#fail(bind) })
    // A shared process listens on the ports of other pods too.
    const ports = this.#input.command.host === undefined ? watchPorts({ ...looking, spec, onOtherPorts }) : undefined
    const becomeReady = async (ready: boolean) => {
      if ((!ready || (await binds.check())) && !signal.aborted) onReady(ready)
    }
    const hooks = {
      onStarted,
      onReady: (ready: boolean) => void becomeReady(ready).catch(this.#report),
      onFailure: (kind: string, output: string) => context.event('Warning', 'Unhealthy', `${kind} probe failed: ${output}`),
      onDead: (kind: string, probe: ProbeSpec) =>
        void this.end(this.#grace(probe), `Container ${spec.name} failed ${kind.toLowerCase()} probe, will be restarted`),
    }
    await Promise.all([binds.done, ports, runProbes({ container: spec, handler: this.#handler, clock, signal, hooks })])
  }

  #fail(bind: Bind): void {
    this.#failure = bind
    this.#input.context.event('Warning', bind.reason, bind.message)
    this.process.killAll() // which program of a shared process listens there is not known
  }

  async #hook(kind: 'PostStart' | 'PreStop', handler: HandlerSpec, signal: AbortSignal): Promise<HandlerResult> {
    const { context } = this.#input
    if (handler.sleep) {
      await context.env.clock.sleep(handler.sleep.seconds * 1_000, signal).catch(() => undefined) // cut short by the end of the process
      return { ok: true, output: '' }
    }
    const result = await runHandler(handler, this.#handler, signal)
    if (!result.ok && !signal.aborted) context.event('Warning', `Failed${kind}Hook`, `${kind}Hook failed: ${result.output}`)
    return result
  }

  #grace(probe?: ProbeSpec): number {
    const { spec } = this.#input.context.pod
    return (probe?.terminationGracePeriodSeconds ?? spec.terminationGracePeriodSeconds ?? DEFAULT_GRACE_SECONDS) * 1_000
  }

  async #endSoftly(why: string): Promise<void> {
    this.#input.context.event('Normal', 'Killing', why)
    const { preStop, stopSignal = '' } = this.#input.spec.lifecycle ?? {}
    const limit = new AbortController()
    void this.process.ended.then(() => limit.abort())
    if (preStop) await this.#hook('PreStop', preStop, limit.signal)
    this.process.signal(stopSignal in constants.signals ? (stopSignal as NodeJS.Signals) : 'SIGTERM')
  }

  #killAfter(ms: number): void {
    const { clock } = this.#input.context.env
    const due = clock.monotonic() + ms
    if (this.#kill && this.#kill.due <= due) return
    this.#kill?.cancel()
    const timer = clock.setTimer(ms, () => this.process.kill())
    this.#kill = { due, cancel: () => timer.cancel() }
  }

  /** Usually at once. A reader that is slow, or somebody who holds the pipe, gets some time without holding up the container. */
  async #drain(): Promise<void> {
    const { clock, timings } = this.#input.context.env
    const drained = this.output.ended.then(() => this.log.close())
    const late = clock.setTimer(timings.drain, () => this.output.destroy())
    void drained.finally(() => late.cancel())
    const short = new AbortController()
    await Promise.race([drained, clock.sleep(Math.min(timings.drain, SHORT_DRAIN_MS), short.signal).catch(() => undefined)])
    short.abort()
  }

  /** Its last output, where its spec wants that as the termination message. */
  async #lastWords(): Promise<string> {
    const { spec, context } = this.#input
    if (spec.terminationMessagePolicy !== 'FallbackToLogsOnError') return ''
    const source = { folder: logFolder(context.env.folder, context.pod.metadata.uid, spec.name), run: this.log.run }
    const options = { follow: false, previous: false, timestamps: false, tailLines: 80, signal: AbortSignal.timeout(1_000) }
    const chunks: Uint8Array[] = []
    try {
      for await (const chunk of readLog(source, options)) chunks.push(chunk)
    } catch (error) {
      this.#report(error)
    }
    return Buffer.concat(chunks).subarray(-MAX_MESSAGE).toString('utf8')
  }

  readonly #report = (error: unknown): void => this.#input.context.env.onError(error, this.#input.context.pod.metadata)
}

const SHORT_DRAIN_MS = 500
const MAX_MESSAGE = 2_048
