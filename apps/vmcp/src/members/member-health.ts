import type { Clock } from '@thv/kernel/clock'
import { isThvError } from '@thv/kernel/errors'
import { McpErrorResponse, McpHttpError } from '@thv/mcp/client/client-errors'
import { LocalRefusal } from './local-refusal.ts'

export type HealthStatus = 'unknown' | 'healthy' | 'degraded' | 'unhealthy'
export type CircuitState = 'closed' | 'open' | 'half-open'
export type FailureCategory = 'timeout' | 'connection_failed' | 'backend_unavailable'

export interface HealthSettings {
  readonly unhealthyThreshold: number
  readonly circuit: { readonly enabled: boolean; readonly failureThreshold: number; readonly timeoutMs: number }
}

/** The health of one backend, fed by the outcomes of real calls and of checks, and the circuit that stops calls to a failing one. */
export class MemberHealth {
  readonly #clock: Clock
  readonly #settings: HealthSettings
  #failures = 0
  #isKnown = false
  #openedAt: number | undefined
  #trialAt: number | undefined
  #lastSuccessAt = Number.NEGATIVE_INFINITY
  #lastCheckAt: number | undefined
  #changedAt: number
  #circuitChangedAt: number
  #category: FailureCategory | undefined
  readonly #listeners = new Set<() => void>()

  constructor(clock: Clock, settings: HealthSettings) {
    this.#clock = clock
    this.#settings = settings
    this.#changedAt = this.#circuitChangedAt = clock.now()
  }

  /** Called when status or circuit change. */
  onChange(listener: () => void): void {
    this.#listeners.add(listener)
  }

  get status(): HealthStatus {
    if (!this.#isKnown) return 'unknown'
    if (this.#failures === 0) return 'healthy'
    return this.#failures >= this.#settings.unhealthyThreshold ? 'unhealthy' : 'degraded'
  }

  get circuit(): CircuitState {
    if (this.#openedAt === undefined) return 'closed'
    return this.#remainingMs > 0 ? 'open' : 'half-open'
  }

  /** Milliseconds to wait, or undefined when a call may go out. A half-open circuit admits one call at a time. */
  admit(): number | undefined {
    if (this.#openedAt === undefined) return undefined
    const { timeoutMs } = this.#settings.circuit
    const now = this.#clock.monotonic()
    if (this.#remainingMs > 0) return this.#remainingMs
    if (this.#trialAt !== undefined && now - this.#trialAt < timeoutMs) return timeoutMs - (now - this.#trialAt)
    this.#trialAt = now
    return undefined
  }

  succeeded(): void {
    const before = this.status
    this.#isKnown = true
    this.#failures = 0
    this.#category = undefined
    this.#lastSuccessAt = this.#clock.monotonic()
    this.#lastCheckAt = this.#clock.now()
    if (this.#openedAt !== undefined) this.#circuitChangedAt = this.#clock.now()
    this.#openedAt = this.#trialAt = undefined
    if (before !== this.status) this.#changed()
  }

  /** The outcome of a call or check that failed. An answer of the backend, also an error, proves that it is alive. */
  failed(error: unknown): void {
    const category = failureCategory(error)
    if (category === undefined) this.#trialAt = undefined
    else if (category === 'alive') this.succeeded()
    else this.#count(category)
  }

  /** A call or check succeeded within that time. */
  isFresh(withinMs: number): boolean {
    return this.#clock.monotonic() - this.#lastSuccessAt < withinMs
  }

  /** For `/api/backends/health`, in the words of ToolHive (Go). */
  get report() {
    const at = (time: number | undefined) => (time === undefined ? null : new Date(time).toISOString())
    return {
      Status: this.status,
      ConsecutiveFailures: this.#failures,
      LastCheckTime: at(this.#lastCheckAt),
      LastErrorCategory: this.#category ?? '',
      LastTransitionTime: at(this.#changedAt),
      CircuitState: this.circuit,
      CircuitLastChanged: at(this.#circuitChangedAt),
    }
  }

  get #remainingMs(): number {
    if (this.#openedAt === undefined) return 0
    return Math.max(0, this.#openedAt + this.#settings.circuit.timeoutMs - this.#clock.monotonic())
  }

  #count(category: FailureCategory): void {
    const before = this.status
    this.#isKnown = true
    this.#failures++
    this.#category = category
    this.#lastCheckAt = this.#clock.now()
    const { enabled, failureThreshold } = this.#settings.circuit
    if (enabled && (this.#trialAt !== undefined || this.#failures >= failureThreshold)) this.#open()
    if (before !== this.status) this.#changed()
  }

  #changed(): void {
    this.#changedAt = this.#clock.now()
    for (const listener of this.#listeners) listener()
  }

  #open(): void {
    this.#openedAt = this.#clock.monotonic()
    this.#trialAt = undefined
    this.#circuitChangedAt = this.#clock.now()
    for (const listener of this.#listeners) listener()
  }
}

/** `alive`: the backend answered. Undefined: the failure says nothing about the backend, as when the client went away. */
export function failureCategory(error: unknown): FailureCategory | 'alive' | undefined {
  if (error instanceof LocalRefusal) return undefined
  if (error instanceof McpErrorResponse) return 'alive'
  if (error instanceof McpHttpError) return error.status >= 502 && error.status <= 504 ? 'backend_unavailable' : 'alive'
  if (!isThvError(error)) return undefined
  switch (error.code as string) {
    case 'timeout':
    case 'backend_timeout':
    case 'backend_connect_timeout':
      return 'timeout'
    case 'backend_dns':
    case 'backend_refused':
    case 'backend_unreachable':
    case 'backend_reset':
    case 'backend_tls':
    case 'backend_protocol':
    case 'backend_blocked':
    case 'mcp_stream_broken':
      return 'connection_failed'
    case 'backend_unavailable':
    case 'mcp_session_lost':
      return 'backend_unavailable'
    default:
      return undefined
  }
}
