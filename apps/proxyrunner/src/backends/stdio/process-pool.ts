import { unavailable } from '@thv/gateway/response/backend-rejection'
import type { ThvError } from '@thv/kernel/errors'
import type { JsonObject } from '@thv/mcp/json-rpc'
import { type Rejection, retryLater } from '@thv/mcp/wire-errors'
import { runConfigError } from '@thv/runconfig/run-config-errors'
import { EraLedger } from './era-memory.ts'
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
import { StartGate } from './process/restart-backoff.ts'
import type { StdioEnv } from './process/stdio-deps.ts'

/** One place with both its faces; a process uses one of them, by the era it turns out to speak. */
interface Seat {
  readonly slot: ProcessSlot
  readonly legacy: LegacyProcess
  readonly modern: ModernProcess
}

/**
 * Which process serves whom (decisions 59 and 60). Where processes can be started at will, each era has its own: a modern one for all
 * modern calls, a legacy one that is shared by the sessions that cannot be asked anything, and one for each session that can, up to a
 * limit; beyond it these share one more. Where there is a fixed number of pods, each is shared and speaks what it speaks.
 */
export class ProcessPool {
  readonly eras: EraLedger
  readonly #env: StdioEnv
  readonly #hasPods: boolean
  readonly #pods: Seat[] = []
  readonly #own = new Map<LegacySession, Seat>()
  readonly #ownGate: StartGate
  /** Processes of sessions that are over. */
  readonly #leaving = new Set<Promise<void>>()
  #plain: Seat | undefined
  #overflow: Seat | undefined
  #modern: Seat | undefined
  #isClosed = false

  constructor(env: StdioEnv) {
    this.#env = env
    this.#hasPods = env.runtime.name === 'kubernetes' || env.runtime.stdioCapacity === 1
    if (this.#hasPods && env.config.isolation === 'session') throw isolationError()
    this.#ownGate = new StartGate(env.clock, { ...env.config.backoff, random: env.random })
    this.eras = new EraLedger(env.clock, env.config.era, env.random)
  }

  /** Attaches to the pod there is, so that readiness says something. Processes of our own wait for their first client. */
  start(): void {
    if (this.#hasPods) void this.#pod(0).slot.ready()
  }

  /** The process for a new session, which it joins. */
  assign(session: LegacySession, uris?: readonly string[]): LegacyProcess | Rejection {
    const seat = this.#isClosed ? retryLater('draining', 1_000) : this.#seatFor(session)
    if (!('slot' in seat)) return seat
    seat.legacy.join(session, uris)
    return seat.legacy
  }

  release(session: LegacySession): void {
    session.process?.leave(session)
    const seat = this.#own.get(session)
    this.#own.delete(session)
    if (seat === undefined) return
    const closed = seat.slot.close().finally(() => this.#leaving.delete(closed))
    this.#leaving.add(closed)
  }

  modern(): ModernProcess {
    if (!this.#hasPods) {
      this.#modern ??= this.#seat('modern', { greet: (link) => greetModern(link, this.#env) })
      return this.#modern.modern
    }
    const idle = this.#pods.find(({ slot }) => slot.link?.inFlight === 0)
    if (idle === undefined && this.#pods.length < this.#podLimit) return this.#pod(this.#pods.length).modern
    return (idle ?? leastBusy(this.#pods) ?? this.#pod(0)).modern
  }

  modernProcesses(): ModernProcess[] {
    return this.#seats.map(({ modern }) => modern)
  }

  /** What to list where a version is refused: what the server itself lists, as far as it is let through. */
  get versions(): readonly string[] | undefined {
    const greeting = this.#seats.map(({ slot }) => slot.greeting).find((found) => found?.era === 'modern')
    const listed = greeting?.era === 'modern' ? greeting.result['supportedVersions'] : undefined
    return this.eras.served(Array.isArray(listed) ? listed.filter((version) => typeof version === 'string') : undefined)
  }

  get inFlight(): number {
    return this.#seats.reduce((sum, { slot }) => sum + (slot.link?.inFlight ?? 0), 0)
  }

  /** Why nothing can be served now; undefined if something can. */
  get problem(): string | undefined {
    if (this.#seats.some(({ slot }) => slot.link !== undefined)) return undefined
    const shared = [this.#plain, this.#overflow, this.#modern, ...this.#pods].filter((seat) => seat !== undefined)
    const problems = shared.map(({ slot }) => slot.problem)
    if (problems.length === 0) return this.#ownGate.problem
    return problems.every((problem) => problem !== undefined) ? problems[0] : undefined
  }

  async close(): Promise<void> {
    this.#isClosed = true
    await Promise.all([...this.#seats.map(({ slot }) => slot.close()), ...this.#leaving])
  }

  #seatFor(session: LegacySession): Seat | Rejection {
    const { isolation } = this.#env.config
    if (this.#hasPods) return this.#leastCrowdedPod()
    if (isolation === 'shared') return this.#asking()
    if (isolation === 'auto' && !wantsOwnProcess(session.clientCapabilities)) return this.#plainSeat()
    if (this.#own.size < this.#env.config.maxProcesses && this.#hasRoom(1)) return this.#ownSeat(session)
    return isolation === 'session' ? unavailable('all its processes are taken by other sessions', FULL_RETRY_MS) : this.#asking()
  }

  /** For sessions that cannot be asked anything: the server is told so, and adapts. */
  #plainSeat(): Seat {
    if (this.#plain === undefined && this.#overflow !== undefined && !this.#hasRoom(0)) return this.#overflow
    this.#plain ??= this.#sharedSeat('shared', {})
    return this.#plain
  }

  /** For all others: what a session cannot do is refused question by question. Without room for it, at least calls can be served. */
  #asking(): Seat {
    if (this.#overflow === undefined && this.#plain !== undefined && !this.#hasRoom(0)) return this.#plain
    this.#overflow ??= this.#sharedSeat('shared-asking', RELAYABLE_CAPABILITIES)
    return this.#overflow
  }

  #sharedSeat(label: string, capabilities: JsonObject): Seat {
    const text = initializeText(this.#env.config, capabilities)
    return this.#seat(label, { greet: (link) => greetLegacy(link, text, this.#env) })
  }

  #ownSeat(session: LegacySession): Seat {
    const { text } = session.initialize
    const seat = this.#seat('session', { own: session, commonGate: this.#ownGate, greet: (link) => greetLegacy(link, text, this.#env) })
    this.#own.set(session, seat)
    return seat
  }

  #leastCrowdedPod(): Seat {
    const empty = this.#pods.find(({ legacy }) => legacy.sessions.size === 0)
    if (empty !== undefined) return empty
    if (this.#pods.length < this.#podLimit) return this.#pod(this.#pods.length)
    return this.#pods.reduce((best, seat) => (seat.legacy.sessions.size < best.legacy.sessions.size ? seat : best))
  }

  #pod(at: number): Seat {
    const existing = this.#pods[at]
    if (existing !== undefined) return existing
    const text = initializeText(this.#env.config, RELAYABLE_CAPABILITIES)
    const seat = this.#seat(`pod-${at}`, { keepsUp: true, greet: podGreeter(text, this.#env) })
    this.#pods.push(seat)
    return seat
  }

  #seat(label: string, { own, commonGate, keepsUp = false, greet }: SeatOptions): Seat {
    const legacy = new LegacyProcess(this.#env, own)
    const modern = new ModernProcess(this.#env)
    const faceOf = (slot: ProcessSlot): SlotListener => (slot.greeting?.era === 'modern' ? modern : legacy)
    const slot = new ProcessSlot(this.#env, {
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

  /** What is learned about one process holds for the server. */
  #noted(outcome: HandshakeOutcome): HandshakeOutcome {
    if (outcome.outcome === 'greeted')
      this.eras.spoke(outcome.greeting.era, { version: versionOf(outcome.greeting), isOnly: this.#hasPods })
    else if (outcome.outcome === 'refused' && isEraRefusal(outcome)) this.eras.refused(outcome.era)
    return outcome
  }

  get #seats(): Seat[] {
    return [this.#plain, this.#overflow, this.#modern, ...this.#own.values(), ...this.#pods].filter((seat) => seat !== undefined)
  }

  get #podLimit(): number {
    return Math.max(1, this.#env.runtime.stdioCapacity)
  }

  /** For one more process, besides the modern one and `shared` of the others that everybody needs. */
  #hasRoom(shared: number): boolean {
    const sharedNow = [this.#plain, this.#overflow].filter((seat) => seat !== undefined).length
    return this.#own.size + Math.max(shared, sharedNow) + 1 < this.#env.runtime.stdioCapacity
  }
}

interface SeatOptions {
  readonly own?: LegacySession | undefined
  readonly commonGate?: StartGate
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

function leastBusy(seats: readonly Seat[]): Seat | undefined {
  let best: Seat | undefined
  for (const seat of seats) if (best === undefined || load(seat) < load(best)) best = seat
  return best
}

function load({ slot }: Seat): number {
  return slot.link?.inFlight ?? Number.POSITIVE_INFINITY
}

const FULL_RETRY_MS = 5_000
