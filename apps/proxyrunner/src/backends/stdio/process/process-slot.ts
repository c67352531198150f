import type { BackendProblem } from '@thv/gateway/backend'
import { unavailable } from '@thv/gateway/response/backend-rejection'
import type { Timer } from '@thv/kernel/clock'
import { errorMessage, ThvError } from '@thv/kernel/errors'
import type { ParsedNotification, ParsedRequest } from '@thv/mcp/parse-body'
import { retryLater } from '@thv/mcp/wire-errors'
import type { StdioConnection, StdioEnd } from '../../../runtime/runtime.ts'
import type { Greeting, HandshakeOutcome } from './handshake.ts'
import { openConnection } from './open-connection.ts'
import { ProcessLink } from './process-connection.ts'
import type { ProcessUnavailable, RejectedError } from './process-unavailable.ts'
import { RestartBackoff } from './restart-backoff.ts'
import type { StdioDeps } from './stdio-deps.ts'

export interface SlotListener {
  onRequest(slot: ProcessSlot, request: ParsedRequest): void
  onNotification(slot: ProcessSlot, notification: ParsedNotification): void
  /** The process of the slot is gone; all its calls have failed already. */
  onDown(slot: ProcessSlot, link: ProcessLink): void
}

export interface SlotOptions {
  readonly label: string
  /** Its process answers to one session only. */
  readonly isOwn: boolean
  greet(link: ProcessLink): Promise<HandshakeOutcome>
  /** After the handshake and before the first call: what the sessions have set up must be set up again. `generation` counts from 1. */
  prepare(link: ProcessLink, greeting: Greeting, generation: number): Promise<void>
  readonly listener: SlotListener
  /** Starts again by itself, without waiting for a call. */
  readonly keepsUp: boolean
  /** Shared by places that come and go with their sessions: a server that cannot be started fails all of them. */
  readonly commonGate?: RestartBackoff | undefined
}

/**
 * The place of one server process. Processes come and go, the place stays, and with it the sessions that use it. A start is shared by
 * all who wait for it; a process that fails, or dies young, delays the next one, with growing and random delays.
 */
export class ProcessSlot {
  readonly isOwn: boolean
  readonly #deps: StdioDeps
  readonly #options: SlotOptions
  readonly #gate: RestartBackoff
  readonly #closing = new AbortController()
  #link: ProcessLink | undefined
  #greeting: Greeting | undefined
  #starting: Promise<ProcessLink | ProcessUnavailable> | undefined
  #greeted: ProcessLink | undefined
  #generation = 0
  #startedAt = 0
  /** Name of the process that gave the greeting, where the runtime has names. */
  #instance: string | undefined
  #problem: string | undefined
  #cause: BackendProblem | undefined
  #greetedAt = 0
  #restart: Timer | undefined

  constructor(deps: StdioDeps, options: SlotOptions) {
    this.#deps = deps
    this.#options = options
    this.isOwn = options.isOwn
    this.#gate = new RestartBackoff(deps.clock, { ...deps.config.backoff, random: deps.random })
  }

  /** The process, if it is up and has been greeted. */
  get link(): ProcessLink | undefined {
    return this.#link
  }

  /** Of the process that is up, or of the last one. */
  get greeting(): Greeting | undefined {
    return this.#greeting
  }

  /** Why it is not usable now; undefined if it is, or could be tried at once. */
  get problem(): string | undefined {
    if (this.#link !== undefined) return undefined
    return this.#waitMs > 0 || this.#options.keepsUp ? (this.#problem ?? 'starting') : undefined
  }

  /** The same as one of the causes that are reported to the owner of the server. */
  get cause(): BackendProblem | undefined {
    if (this.#link !== undefined) return undefined
    const greeted = this.#greeted
    const isLate = greeted !== undefined && this.#deps.clock.monotonic() - this.#greetedAt >= LATE_HANDSHAKE_MS
    return isLate ? silence(greeted) : this.#cause
  }

  ready(): ProcessLink | ProcessUnavailable | Promise<ProcessLink | ProcessUnavailable> {
    if (this.#link !== undefined) return this.#link
    if (this.#closing.signal.aborted) return { rejection: retryLater('draining', 1_000) }
    this.#starting ??= this.#start().finally(() => {
      this.#starting = undefined
    })
    return this.#starting
  }

  /** The process that is up, or that is being greeted and may speak already. */
  get current(): ProcessLink | undefined {
    return this.#link ?? this.#greeted
  }

  async close(): Promise<void> {
    this.#restart?.cancel()
    this.#closing.abort(new ThvError('aborted', 'the process is not needed any more'))
    await Promise.all([this.#stop(this.#link), this.#stop(this.#greeted), this.#starting])
  }

  async #start(): Promise<ProcessLink | ProcessUnavailable> {
    const { clock, config, metrics } = this.#deps
    const delay = this.#waitMs
    if (delay > config.maxStartDelayMs) return { rejection: unavailable('it is being started again', delay) }
    try {
      if (delay > 0) await clock.sleep(delay, this.#closing.signal)
      const connection = await openConnection(this.#deps, this.#closing.signal)
      metrics.processStarted()
      return await this.#greet(connection)
    } catch (error) {
      return this.#failed(errorMessage(error))
    }
  }

  async #greet(connection: StdioConnection): Promise<ProcessLink | ProcessUnavailable> {
    const { config, clock, log, metrics } = this.#deps
    const { listener } = this.#options
    const link: ProcessLink = new ProcessLink({
      connection,
      config,
      clock,
      log,
      metrics,
      listener: {
        onRequest: (request) => listener.onRequest(this, request),
        onNotification: (notification) => listener.onNotification(this, notification),
        onEnd: (end) => this.#ended(link, end),
      },
    })
    this.#greeted = link
    this.#greetedAt = clock.monotonic()
    const known = this.#knownGreeting(connection)
    const outcome: HandshakeOutcome = known ? { outcome: 'greeted', greeting: known } : await this.#options.greet(link)
    if (outcome.outcome === 'greeted' && known === undefined) {
      this.#instance = connection.instance
      this.#greeting = outcome.greeting
      await this.#options.prepare(link, outcome.greeting, this.#generation + 1)
    }
    this.#greeted = undefined
    if (outcome.outcome === 'refused') return this.#refused(link, outcome)
    if (outcome.outcome === 'failed' || link.ended || this.#closing.signal.aborted) {
      this.#cause = link.ended ? { reason: 'ServerEnded', message: 'The MCP server ended during the handshake.' } : silence(link)
      this.#discard(link)
      return this.#failed(outcome.outcome === 'failed' ? 'no answer to the handshake' : 'ended during the handshake')
    }
    this.#link = link
    this.#options.commonGate?.succeeded()
    this.#generation++
    this.#startedAt = clock.monotonic()
    this.#problem = undefined
    this.#cause = undefined
    log.info('server process is up', { slot: this.#options.label, era: outcome.greeting.era, generation: this.#generation })
    return link
  }

  /** A process that was only lost sight of knows everything still, and some servers refuse to be greeted twice. */
  #knownGreeting({ instance }: StdioConnection): Greeting | undefined {
    return instance !== undefined && instance === this.#instance ? this.#greeting : undefined
  }

  #refused(link: ProcessLink, refused: RejectedError): ProcessUnavailable {
    this.#discard(link)
    const problem = `the server does not speak the ${refused.era} era`
    this.#cause = { reason: 'BackendNotMcp', message: 'The program answers the MCP handshake with an error.' }
    if (this.#options.keepsUp) return { ...this.#failed(problem), refused }
    this.#problem = problem
    return { rejection: unavailable('it refused the handshake'), refused }
  }

  #failed(problem: string): ProcessUnavailable {
    this.#options.commonGate?.failed(problem)
    return this.#delayed(problem)
  }

  #delayed(problem: string): ProcessUnavailable {
    const { log, metrics } = this.#deps
    this.#gate.failed(problem)
    this.#problem = problem
    metrics.processFailed()
    log.warn('server process is not available', { slot: this.#options.label, problem, retryInMs: Math.round(this.#waitMs) })
    this.#scheduleRestart()
    return { rejection: unavailable('it could not be started', this.#waitMs) }
  }

  #ended(link: ProcessLink, end: StdioEnd): void {
    this.#deps.metrics.processEnded()
    if (this.#link !== link) return
    this.#link = undefined
    this.#options.listener.onDown(this, link)
    if (this.#closing.signal.aborted) return
    this.#deps.log.warn('server process ended', { slot: this.#options.label, ...end })
    this.#cause = { reason: 'ServerEnded', message: 'The MCP server ended.' }
    if (this.#deps.clock.monotonic() - this.#startedAt < this.#deps.config.stableMs) this.#delayed(end.message)
    else {
      this.#gate.succeeded()
      this.#problem = end.message
      this.#scheduleRestart()
    }
  }

  #scheduleRestart(): void {
    if (!this.#options.keepsUp || this.#closing.signal.aborted) return
    this.#restart?.cancel()
    this.#restart = this.#deps.clock.setTimer(this.#waitMs, () => void this.ready())
  }

  get #waitMs(): number {
    return Math.max(this.#gate.waitMs, this.#options.commonGate?.waitMs ?? 0)
  }

  #discard(link: ProcessLink): void {
    void this.#stop(link)
  }

  async #stop(link: ProcessLink | undefined): Promise<void> {
    try {
      await link?.close()
    } catch (error) {
      this.#deps.log.warn('a server did not stop', { slot: this.#options.label, error: errorMessage(error) })
    }
  }
}

/** A server that takes longer may still be starting; its clients should learn the cause of the delay. */
const LATE_HANDSHAKE_MS = 8_000

function silence(link: ProcessLink): BackendProblem {
  if (link.noiseLines > 0)
    return {
      reason: 'BackendNotMcp',
      message: 'The program writes lines to its standard output that are not MCP messages, and does not answer the handshake.',
    }
  return { reason: 'HandshakeTimedOut', message: 'The program does not answer the MCP handshake on its standard input.' }
}
