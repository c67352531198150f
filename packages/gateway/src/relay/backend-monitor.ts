import { collect } from '@thv/http/outbound/collect'
import { createBackoff } from '@thv/kernel/backoff'
import type { Clock } from '@thv/kernel/clock'
import { errorMessage, isThvError } from '@thv/kernel/errors'
import { EraCache, type FinalVerdict } from '@thv/mcp/era-cache'
import { isLegacyVersion, MODERN_VERSION } from '@thv/mcp/versions'
import type { Log } from '@thv/telemetry/log'
import type { BackendProblem } from '../backend.ts'
import type { BackendClient } from './backend-client.ts'
import { type Discovery, discover, speaksLegacy } from './discover-probe.ts'

export interface MonitorOptions {
  readonly backend: BackendClient
  readonly clock: Clock
  readonly log: Log
  readonly intervalMs: number
  readonly timeoutMs: number
  /** Failures in a row after which the backend counts as gone. */
  readonly threshold: number
  /** False: the backend is asked once what it speaks, and counts as alive whatever it says. */
  readonly watches: boolean
  /** The configured era of the backend: then it is not probed. */
  readonly era?: 'legacy' | undefined
}

export interface MonitorState {
  readonly alive: boolean
  readonly message: string
  readonly eras: readonly ('legacy' | 'modern')[] | undefined
  readonly versions: readonly string[] | undefined
  readonly problem: BackendProblem | undefined
}

const KEY = 'backend'
const MIN_REST_MS = 250
/** Until the first answer somebody waits for the server to start, so it is looked for at least this often. */
const MAX_FIRST_REST_MS = 1_000
/** So many looks in vain before the first answer are worth a line: a wrong port looks like a slow start. */
const VAIN_LOOKS = 15
/** A server that starts refuses connections for a while: what lasts longer is worth telling. */
const PROBLEM_AFTER_MS = 5_000
/** How long at most until a backend that is not watched is asked again what it speaks. */
const MAX_ASK_AGAIN_MS = 600_000

/**
 * Watches an HTTP backend without doing anything to it. What it finds marks the runner ready or not, and nothing else: a server that
 * fails a probe may still be serving somebody.
 */
export class BackendMonitor {
  readonly #options: MonitorOptions
  readonly #eras: EraCache
  #discovery: Discovery | undefined
  #failures = 0
  #alive: boolean
  #hasAnswered = false
  #message = 'the backend has not answered yet'
  /** Why it does not count as an MCP server although it answers. */
  #notMcp: string | undefined
  #failure: string | undefined
  #failingSince: number | undefined
  #nudge = Promise.withResolvers<void>()

  constructor(options: MonitorOptions) {
    this.#options = options
    this.#alive = !options.watches
    this.#eras = new EraCache({
      clock: options.clock,
      probe: async (_key, signal) => (await this.#discover(signal)).verdict,
      onChange: (_key, { verdict }) => options.log.info('the backend speaks', { era: verdict }),
    })
  }

  get state(): MonitorState {
    const { watches } = this.#options
    const versions = this.#discovery?.versions
    return {
      alive: this.#alive,
      message: this.#alive ? (watches ? 'the backend answers' : 'the backend is not checked') : this.#message,
      eras: this.#options.era === undefined ? erasOf(this.#eras.peek(KEY), versions) : [this.#options.era],
      versions,
      problem: this.#alive ? undefined : this.#problem,
    }
  }

  get #problem(): BackendProblem | undefined {
    if (this.#notMcp !== undefined) return { reason: 'BackendNotMcp', message: this.#notMcp }
    const { clock, backend } = this.#options
    if (this.#failingSince === undefined || clock.monotonic() - this.#failingSince < PROBLEM_AFTER_MS) return undefined
    if (this.#failure === undefined) return undefined
    const port = new URL(backend.address.origin).port || '80'
    if (this.#failure === 'timeout')
      return { reason: 'HandshakeTimedOut', message: `Port ${port} of the MCP server accepts requests and does not answer them.` }
    return { reason: 'BackendPortClosed', message: `Nothing listens on port ${port} of the MCP server.` }
  }

  /** Runs until the signal aborts, or until all is known that it has to find out. Never rejects. */
  async run(signal: AbortSignal): Promise<void> {
    const { intervalMs, watches, log, era } = this.#options
    if (era !== undefined && !watches) return
    const backoff = createBackoff({ baseMs: Math.min(100, intervalMs), maxMs: watches ? intervalMs : MAX_ASK_AGAIN_MS })
    signal.addEventListener('abort', () => this.#eras.close(), { once: true })
    while (!signal.aborted) {
      let restMs = backoff.next()
      try {
        const isKnown = await this.#check(signal)
        if (!watches && isKnown) return
        if (watches && this.#failures === 0) {
          backoff.reset()
          restMs = intervalMs * (0.9 + 0.2 * Math.random())
        }
      } catch (error) {
        if (!signal.aborted) log.error('the watch over the backend failed', { error: errorMessage(error) })
      }
      if (watches && !this.#hasAnswered && this.#notMcp === undefined) restMs = Math.min(restMs, MAX_FIRST_REST_MS)
      await this.#rest(restMs, signal).catch(() => undefined) // the loop sees the signal
    }
  }

  /** Something suggests that things have changed: look now. */
  nudge(): void {
    this.#nudge.resolve()
  }

  /** Another process answers there now. */
  restarted(): void {
    this.#eras.forget(KEY)
    this.#failingSince = undefined
    this.#notMcp = undefined
    this.nudge()
  }

  /** Whether it is known what the backend speaks, or known that it does not tell. */
  async #check(signal: AbortSignal): Promise<boolean> {
    if (this.#options.era !== undefined) {
      this.#judge(await this.#knock(signal))
      return true
    }
    const before = this.#discovery
    const found = await this.#eras.get(KEY, signal)
    const { verdict } = found
    // The probe itself has just told whether anybody is there.
    if (this.#discovery !== before || verdict === 'inconclusive') this.#judge(this.#discovery?.status)
    else this.#judge(verdict === 'modern' ? (await this.#discover(signal)).status : await this.#knock(signal))
    return found.verdict !== 'inconclusive' || found.reason === 'unauthorized'
  }

  async #discover(signal: AbortSignal): Promise<Discovery> {
    const { backend, timeoutMs, watches } = this.#options
    const found = await discover(backend, { timeoutMs, signal })
    this.#failure = found.failure
    this.#notMcp = undefined
    if (found.failure === 'backend_protocol') this.#notMcp = `${this.#where} does not speak HTTP.`
    else if (watches && found.isSuspect && !(await speaksLegacy(backend, { timeoutMs, signal })))
      this.#notMcp = `${this.#where} is not an MCP server: POST ${backend.ownPath} answers ${found.status} without an MCP message.`
    // It may still be starting, or be replaced: nothing is kept of it, and it is asked again.
    this.#discovery = this.#notMcp === undefined ? found : { ...found, verdict: { verdict: 'inconclusive', reason: 'unavailable' } }
    return this.#discovery
  }

  get #where(): string {
    return `The program on port ${new URL(this.#options.backend.address.origin).port || '80'}`
  }

  /** For servers that would take a second `server/discover` for an error worth logging. */
  async #knock(signal: AbortSignal): Promise<number | undefined> {
    const { backend, timeoutMs, clock } = this.#options
    const limit = new AbortController()
    const timer = clock.setTimer(timeoutMs, () => limit.abort())
    try {
      const request = { method: 'HEAD', path: '/', headers: [], maxResponseBytes: 0, signal: AbortSignal.any([signal, limit.signal]) }
      const { status } = await collect(backend.target, request)
      this.#failure = undefined
      return status
    } catch (error) {
      signal.throwIfAborted()
      this.#failure = limit.signal.aborted ? 'timeout' : isThvError(error) ? error.code : 'backend_unreachable'
      return undefined
    } finally {
      timer.cancel()
    }
  }

  #judge(status: number | undefined): void {
    const { threshold, watches, log } = this.#options
    if (!watches) return
    const ok = status !== undefined && status < 500 && this.#notMcp === undefined
    this.#failingSince = ok ? undefined : (this.#failingSince ?? this.#options.clock.monotonic())
    this.#failures = ok ? 0 : this.#failures + 1
    this.#hasAnswered ||= ok
    this.#message = this.#notMcp ?? (status === undefined ? 'the backend does not answer' : `the backend answers ${status}`)
    const alive = ok || (this.#alive && this.#failures < threshold)
    if (!this.#hasAnswered && this.#notMcp === undefined && this.#failures === VAIN_LOOKS)
      log.warn(`${this.#message}: is this the port that the server listens on?`, { address: this.#options.backend.address.origin })
    if (alive === this.#alive) return
    this.#alive = alive
    if (alive) {
      log.info('the backend answers')
      return
    }
    this.#eras.forget(KEY) // it may come back as another version
    log.warn(this.#message)
  }

  /** Ends early when something nudges, but not so early that a flood of failing calls becomes one of checks. */
  async #rest(ms: number, signal: AbortSignal): Promise<void> {
    const { clock } = this.#options
    const over = new AbortController()
    this.#nudge = Promise.withResolvers()
    await clock.sleep(Math.min(ms, MIN_REST_MS), signal)
    try {
      await Promise.race([clock.sleep(Math.max(0, ms - MIN_REST_MS), AbortSignal.any([signal, over.signal])), this.#nudge.promise])
    } finally {
      over.abort()
    }
  }
}

/** A modern server that lists older versions, or lists none at all, may speak both; only the list can tell. */
function erasOf(verdict: FinalVerdict | undefined, versions: readonly string[] | undefined): MonitorState['eras'] {
  if (verdict?.verdict === 'legacy') return ['legacy']
  if (verdict?.verdict !== 'modern') return undefined
  return versions?.includes(MODERN_VERSION) && versions.some(isLegacyVersion) ? ['legacy', 'modern'] : ['modern']
}
