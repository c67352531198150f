import type { BackendProblem } from '@thv/gateway/backend'
import { unavailable } from '@thv/gateway/response/backend-rejection'
import { RejectedError } from '@thv/gateway/response/rejected-error'
import type { ThvError } from '@thv/kernel/errors'
import type { JsonObject } from '@thv/mcp/json-rpc'
import { type Rejection, retryLater } from '@thv/mcp/wire-errors'
import type { Era } from '@thv/middleware/pipeline/request-context'
import { runConfigError } from '@thv/runconfig/run-config-errors'
import { EraMemory } from './era-memory.ts'
import { LegacyProcess } from './legacy/legacy-process.ts'
import type { LegacySession } from './legacy/legacy-session.ts'
import { ModernProcess } from './modern/modern-process.ts'
import { RELAYABLE_CAPABILITIES, wantsOwnProcess } from './process/attribution.ts'
import {
  type Greeting,
  greetLegacy,
  greetModern,
  type HandshakeOutcome,
  initializeText,
  isEraRefusal,
  podGreeter,
} from './process/handshake.ts'
import type { ProcessLink } from './process/process-connection.ts'
import { ProcessSlot, type SlotListener } from './process/process-slot.ts'
import { isUnavailable } from './process/process-unavailable.ts'
import { RestartBackoff } from './process/restart-backoff.ts'
import type { StdioDeps } from './process/stdio-deps.ts'

/** One place with both its faces; a process uses one of them, by the era it turns out to speak. */
interface PooledProcess {
  readonly slot: ProcessSlot
  readonly legacy: LegacyProcess
  readonly modern: ModernProcess
}

/**
 * Assigns processes to clients. Where processes can be started at will, each era has its own: a modern one for all
 * modern calls, a legacy one that is shared by the sessions that cannot be asked anything, and one for each session that can, up to a
 * limit; beyond it these share one more. Where there is a fixed number of pods, each is shared and speaks what it speaks.
 */
export class ProcessPool {
  readonly eras: EraMemory
  readonly #deps: StdioDeps
  readonly #hasPods: boolean
  readonly #pods: PooledProcess[] = []
  readonly #own = new Map<LegacySession, PooledProcess>()
  readonly #ownGate: RestartBackoff
  /** Processes of sessions that are over. */
  readonly #leaving = new Set<Promise<void>>()
  #plain: PooledProcess | undefined
  #overflow: PooledProcess | undefined
  #modern: PooledProcess | undefined
  #isClosed = false

  constructor(deps: StdioDeps) {
    this.#deps = deps
    this.#hasPods = deps.runtime.name === 'kubernetes' || deps.runtime.stdioCapacity === 1
    if (this.#hasPods && deps.config.isolation === 'session') throw isolationError()
    this.#ownGate = new RestartBackoff(deps.clock, { ...deps.config.backoff, random: deps.random })
    this.eras = new EraMemory(deps.clock, deps.config.era, deps.random)
  }

  /** Attaches to the pod there is, so that readiness says something. Processes of our own wait for their first client. */
  start(): void {
    if (this.#hasPods) void this.#pod(0).slot.ready()
  }

  /** The process for a new session, which it joins. */
  assign(session: LegacySession, uris?: readonly string[]): LegacyProcess | Rejection {
    const pooled = this.#isClosed ? retryLater('draining', 1_000) : this.#choose(session)
    if (!('slot' in pooled)) return pooled
    pooled.legacy.join(session, uris)
    return pooled.legacy
  }

  release(session: LegacySession): void {
    session.process?.leave(session)
    const pooled = this.#own.get(session)
    this.#own.delete(session)
    if (pooled === undefined) return
    const closed = pooled.slot.close().finally(() => this.#leaving.delete(closed))
    this.#leaving.add(closed)
  }

  modern(): ModernProcess {
    if (!this.#hasPods) {
      this.#modern ??= this.#open('modern', { greet: (link) => greetModern(link, this.#deps) })
      return this.#modern.modern
    }
    const idle = this.#pods.find(({ slot }) => slot.link?.inFlight === 0)
    if (idle === undefined && this.#pods.length < this.#podLimit) return this.#pod(this.#pods.length).modern
    return (idle ?? leastBusy(this.#pods) ?? this.#pod(0)).modern
  }

  /** A process of the era, for requests of our own: one that runs, if there is one. */
  async anyProcess(era: Era): Promise<ProcessSlot> {
    const running = this.#all.find(({ slot }) => slot.link !== undefined && slot.greeting?.era === era)
    if (running !== undefined) return running.slot
    const { slot } = this.#hasPods ? this.#pod(0) : era === 'modern' ? this.modern() : this.#plainProcess()
    const readiness = await slot.ready()
    if (isUnavailable(readiness)) throw new RejectedError(readiness.rejection)
    return slot
  }

  modernProcesses(): ModernProcess[] {
    return this.#all.map(({ modern }) => modern)
  }

  /** Versions to list in a rejection: those of the server, as far as they are let through. */
  get versions(): readonly string[] | undefined {
    const greeting = this.#all.map(({ slot }) => slot.greeting).find((found) => found?.era === 'modern')
    const listed = greeting?.era === 'modern' ? greeting.result['supportedVersions'] : undefined
    return this.eras.served(Array.isArray(listed) ? listed.filter((version) => typeof version === 'string') : undefined)
  }

  get inFlight(): number {
    return this.#all.reduce((sum, { slot }) => sum + (slot.link?.inFlight ?? 0), 0)
  }

  /** Why nothing can be served now; undefined if something can. */
  get problem(): string | undefined {
    if (this.#all.some(({ slot }) => slot.link !== undefined)) return undefined
    const shared = [this.#plain, this.#overflow, this.#modern, ...this.#pods].filter((pooled) => pooled !== undefined)
    const problems = shared.map(({ slot }) => slot.problem)
    if (problems.length === 0) return this.#ownGate.problem
    return problems.every((problem) => problem !== undefined) ? problems[0] : undefined
  }

  /** The cause of `problem`, of pods only: other processes start when a client needs them. */
  get cause(): BackendProblem | undefined {
    return this.#pods.map(({ slot }) => slot.cause).find((cause) => cause !== undefined)
  }

  async close(): Promise<void> {
    this.#isClosed = true
    await Promise.all([...this.#all.map(({ slot }) => slot.close()), ...this.#leaving])
  }

  #choose(session: LegacySession): PooledProcess | Rejection {
    const { isolation } = this.#deps.config
    if (this.#hasPods) return this.#leastCrowdedPod()
    if (isolation === 'shared') return this.#asking()
    if (isolation === 'auto' && !wantsOwnProcess(session.clientCapabilities)) return this.#plainProcess()
    if (this.#own.size < this.#deps.config.maxProcesses && this.#hasRoom(1)) return this.#ownProcess(session)
    return isolation === 'session' ? unavailable('all its processes are taken by other sessions', FULL_RETRY_MS) : this.#asking()
  }

  /** For sessions without client capabilities: the server receives none, and adapts. */
  #plainProcess(): PooledProcess {
    if (this.#plain === undefined && this.#overflow !== undefined && !this.#hasRoom(0)) return this.#overflow
    this.#plain ??= this.#sharedProcess('shared', {})
    return this.#plain
  }

  /** For all others: what a session cannot do is refused question by question. Without room for it, at least calls can be served. */
  #asking(): PooledProcess {
    if (this.#overflow === undefined && this.#plain !== undefined && !this.#hasRoom(0)) return this.#plain
    this.#overflow ??= this.#sharedProcess('shared-asking', RELAYABLE_CAPABILITIES)
    return this.#overflow
  }

  #sharedProcess(label: string, capabilities: JsonObject): PooledProcess {
    const text = initializeText(this.#deps.config, capabilities)
    return this.#open(label, { greet: (link) => greetLegacy(link, text, this.#deps) })
  }

  #ownProcess(session: LegacySession): PooledProcess {
    const { text } = session.initialize
    const pooled = this.#open('session', { own: session, commonGate: this.#ownGate, greet: (link) => greetLegacy(link, text, this.#deps) })
    this.#own.set(session, pooled)
    return pooled
  }

  #leastCrowdedPod(): PooledProcess {
    const empty = this.#pods.find(({ legacy }) => legacy.sessions.size === 0)
    if (empty !== undefined) return empty
    if (this.#pods.length < this.#podLimit) return this.#pod(this.#pods.length)
    return this.#pods.reduce((best, pooled) => (pooled.legacy.sessions.size < best.legacy.sessions.size ? pooled : best))
  }

  #pod(at: number): PooledProcess {
    const existing = this.#pods[at]
    if (existing !== undefined) return existing
    const text = initializeText(this.#deps.config, RELAYABLE_CAPABILITIES)
    const pooled = this.#open(`pod-${at}`, { keepsUp: true, greet: podGreeter(text, this.#deps) })
    this.#pods.push(pooled)
    return pooled
  }

  #open(label: string, { own, commonGate, keepsUp = false, greet }: PooledProcessOptions): PooledProcess {
    const legacy = new LegacyProcess(this.#deps, own)
    const modern = new ModernProcess(this.#deps)
    const faceOf = (slot: ProcessSlot): SlotListener => (slot.greeting?.era === 'modern' ? modern : legacy)
    const slot = new ProcessSlot(this.#deps, {
      label,
      isOwn: own !== undefined,
      keepsUp,
      commonGate,
      greet: async (link) => this.#noted(await greet(link)),
      prepare: (link, greeting) => legacy.prepare(link, greeting),
      listener: {
        onRequest: (on, request) => faceOf(on).onRequest(on, request),
        onNotification: (on, notification) => faceOf(on).onNotification(on, notification),
        onDown: (on, link) => faceOf(on).onDown(on, link),
      },
    })
    legacy.slot = slot
    modern.slot = slot
    return { slot, legacy, modern }
  }

  /** Facts about one process hold for the server. */
  #noted(outcome: HandshakeOutcome): HandshakeOutcome {
    if (outcome.outcome === 'greeted')
      this.eras.spoke(outcome.greeting.era, { version: versionOf(outcome.greeting), isOnly: this.#hasPods })
    else if (outcome.outcome === 'refused' && isEraRefusal(outcome)) this.eras.refused(outcome.era)
    return outcome
  }

  get #all(): PooledProcess[] {
    return [this.#plain, this.#overflow, this.#modern, ...this.#own.values(), ...this.#pods].filter((pooled) => pooled !== undefined)
  }

  get #podLimit(): number {
    return Math.max(1, this.#deps.runtime.stdioCapacity)
  }

  /** For one more process, besides the modern one and `shared` of the others that everybody needs. */
  #hasRoom(shared: number): boolean {
    const sharedNow = [this.#plain, this.#overflow].filter((pooled) => pooled !== undefined).length
    return this.#own.size + Math.max(shared, sharedNow) + 1 < this.#deps.runtime.stdioCapacity
  }
}

interface PooledProcessOptions {
  readonly own?: LegacySession | undefined
  readonly commonGate?: RestartBackoff
  readonly keepsUp?: boolean
  greet(link: ProcessLink): Promise<HandshakeOutcome>
}

/** A pod's process lives longer than a session, and there is no other: the promise could not be kept. */
function isolationError(): ThvError {
  const message = 'stdio_isolation: session needs the local runtime; use auto or shared where the server runs in a pod'
  return runConfigError('run_config_invalid', message)
}

function versionOf(greeting: Greeting): string | undefined {
  return greeting.era === 'legacy' ? greeting.version : undefined
}

function leastBusy(processes: readonly PooledProcess[]): PooledProcess | undefined {
  let best: PooledProcess | undefined
  for (const pooled of processes) if (best === undefined || load(pooled) < load(best)) best = pooled
  return best
}

function load({ slot }: PooledProcess): number {
  return slot.link?.inFlight ?? Number.POSITIVE_INFINITY
}

const FULL_RETRY_MS = 5_000
