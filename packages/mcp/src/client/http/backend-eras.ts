import { type Clock, systemClock } from '@thv/kernel/clock'
import { EraCache, type FinalVerdict } from '../../era-cache.ts'
import type { Contradiction, Observation } from '../../probe.ts'

export interface BackendErasOptions {
  readonly clock?: Clock | undefined
  readonly legacyTtlMs?: number
  /** Told once per change, for status, metric and log. */
  onChange?(key: string, verdict: FinalVerdict): void
}

type Probe = (signal: AbortSignal) => Promise<FinalVerdict>

/**
 * The eras of all backends that a process has clients for, each probed once. The clients bring the probe, as only they know how to get
 * in; the verdict is the same for all of them.
 */
export class BackendEras {
  readonly #cache: EraCache
  readonly #probes = new Map<string, Probe>()

  constructor({ clock = systemClock, legacyTtlMs, onChange }: BackendErasOptions = {}) {
    this.#cache = new EraCache({
      clock,
      probe: (key, signal) => this.#run(key, signal),
      ...(legacyTtlMs !== undefined && { legacyTtlMs }),
      ...(onChange && { onChange }),
    })
  }

  /**
   * The verdict on a backend; `probe` runs if none is known. One that another caller's probe could not reach, perhaps for want of
   * rights, is asked for again with the caller's own.
   */
  async get(key: string, probe: Probe, signal: AbortSignal): Promise<FinalVerdict> {
    let isOwn = false
    const own: Probe = (limit) => {
      isOwn = true
      return probe(limit)
    }
    const verdict = await this.#ask(key, own, signal)
    return isOwn || verdict.verdict !== 'inconclusive' ? verdict : await this.#ask(key, own, signal)
  }

  observe(key: string, observation: Observation): Contradiction | undefined {
    return this.#cache.observe(key, observation)
  }

  /** After a recovery, or when the backend was replaced. */
  forget(key: string): void {
    this.#cache.forget(key)
  }

  close(): void {
    this.#cache.close()
  }

  async #ask(key: string, probe: Probe, signal: AbortSignal): Promise<FinalVerdict> {
    this.#probes.set(key, probe)
    try {
      return await this.#cache.get(key, signal)
    } finally {
      if (this.#probes.get(key) === probe) this.#probes.delete(key)
    }
  }

  /** The cache calls it at once when it starts a flight, so it is the probe of the current caller. */
  #run(key: string, signal: AbortSignal): Promise<FinalVerdict> {
    const probe = this.#probes.get(key)
    return probe ? probe(signal) : Promise.resolve({ verdict: 'inconclusive', reason: 'unavailable' })
  }
}
