import type { Clock } from '@thv/kernel/clock'
import { abortable } from '@thv/kernel/deadline'
import { ThvError } from '@thv/kernel/errors'
import { type Contradiction, contradictionOf, type Observation, type ProbeVerdict } from './probe.ts'

/** The possible results of a finished probe, with its retry if one was due. */
export type FinalVerdict = Exclude<ProbeVerdict, { readonly verdict: 'retry' }>

export interface EraCacheOptions {
  /** Asks the backend. Must end when the signal aborts; a rejection reaches all who wait, and is not kept. */
  probe(key: string, signal: AbortSignal): Promise<FinalVerdict>
  readonly clock: Clock
  /** Told once per change, for status, metric and log. */
  onChange?(key: string, verdict: FinalVerdict): void
  /** An upgraded backend goes on answering legacy, so only time corrects that verdict. 10 minutes unless given. */
  readonly legacyTtlMs?: number
  /** No probe takes longer; 30 s unless given (P6: a stdio server may take that long to come up). */
  readonly probeTimeoutMs?: number
  /** Backends remembered; the one asked for longest ago goes first. 1,000 unless given. */
  readonly maxEntries?: number
  /** In [0, 1), as Math.random. */
  random?(): number
}

interface Entry {
  /** Also of use after its end: to tell a change from a confirmation. */
  readonly verdict: FinalVerdict
  /** By the monotonic clock. */
  expiresAt: number
}

/** Share of the legacy life that is random, so that replicas and backends do not probe in step. */
const JITTER = 0.2

/**
 * The era of each backend, probed once and kept. The key is origin and path of an HTTP backend, or a process with its generation;
 * never a principal. A modern verdict holds until an answer contradicts it, all others expire; inconclusive ones are not kept.
 */
export class EraCache {
  readonly #options: EraCacheOptions
  readonly #entries = new Map<string, Entry>()
  readonly #flights = new Map<string, Promise<FinalVerdict>>()
  readonly #closing = new AbortController()

  constructor(options: EraCacheOptions) {
    this.#options = options
  }

  /** The verdict, from a probe if need be. Callers for one key share it; `signal` ends the wait of this caller alone. */
  async get(key: string, signal: AbortSignal): Promise<FinalVerdict> {
    signal.throwIfAborted()
    return this.peek(key) ?? (await abortable(this.#flights.get(key) ?? this.#fly(key), signal))
  }

  /** The verdict if it is known and still good; starts nothing. */
  peek(key: string): FinalVerdict | undefined {
    const entry = this.#entries.get(key)
    if (entry === undefined || entry.expiresAt <= this.#options.clock.monotonic()) return undefined
    this.#entries.delete(key)
    this.#entries.set(key, entry) // now the youngest
    return entry.verdict
  }

  /** After a restart, a recovery or a change of configuration. Waiting callers get the old answer, later ones a new one. */
  forget(key: string): void {
    const entry = this.#entries.get(key)
    if (entry) entry.expiresAt = Number.NEGATIVE_INFINITY
    this.#flights.delete(key)
  }

  /**
   * Receives the answers of a backend to ordinary requests. If that contradicts the era it is known for, the verdict is corrected or
   * dropped, and the caller learns whether it may send the request again. Cheap when all is well.
   */
  observe(key: string, observation: Observation): Contradiction | undefined {
    const verdict = this.peek(key)?.verdict
    if (verdict !== 'legacy' && verdict !== 'modern') return undefined
    const contradiction = contradictionOf(verdict, observation)
    if (contradiction === undefined) return undefined
    this.forget(key)
    if (contradiction.era !== undefined) this.#keep(key, { verdict: contradiction.era })
    return contradiction
  }

  /** Aborts what is in the air; those who wait get the reason. */
  close(): void {
    this.#closing.abort(new ThvError('aborted', 'the era cache is closed'))
    this.#entries.clear()
  }

  #fly(key: string): Promise<FinalVerdict> {
    const flight = this.#probe(key).then(
      (verdict) => {
        if (this.#land(key, flight) && verdict.verdict !== 'inconclusive') this.#keep(key, verdict)
        return verdict
      },
      (error) => {
        this.#land(key, flight)
        throw error
      },
    )
    flight.catch(() => {}) // every caller gets the rejection; that all of them have left is no fault
    this.#flights.set(key, flight)
    return flight
  }

  /** False when the key was forgotten meanwhile: then the answer is of the past. */
  #land(key: string, flight: Promise<FinalVerdict>): boolean {
    return this.#flights.get(key) === flight && this.#flights.delete(key)
  }

  async #probe(key: string): Promise<FinalVerdict> {
    const { probe, clock, probeTimeoutMs = 30_000 } = this.#options
    const limit = new AbortController()
    const timer = clock.setTimer(probeTimeoutMs, () => limit.abort(new ThvError('timeout', `no era of ${key} within ${probeTimeoutMs} ms`)))
    const signal = AbortSignal.any([limit.signal, this.#closing.signal])
    try {
      signal.throwIfAborted()
      return await abortable(probe(key, signal), signal)
    } finally {
      timer.cancel()
    }
  }

  #keep(key: string, verdict: FinalVerdict): void {
    const { clock, legacyTtlMs = 600_000, maxEntries = 1_000, random = Math.random, onChange } = this.#options
    const life = verdict.verdict === 'modern' ? Number.POSITIVE_INFINITY : legacyTtlMs * (1 - JITTER * random())
    const before = this.#entries.get(key)?.verdict.verdict
    this.#entries.delete(key)
    this.#entries.set(key, { verdict, expiresAt: clock.monotonic() + life })
    for (const oldest of this.#entries.keys()) {
      if (this.#entries.size <= maxEntries) break
      this.#entries.delete(oldest)
    }
    if (before !== verdict.verdict) onChange?.(key, verdict)
  }
}
