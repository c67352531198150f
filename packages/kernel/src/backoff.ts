export interface BackoffOptions {
  /** Delay after the first failure, before jitter. */
  baseMs: number
  /** No delay is longer. */
  maxMs: number
  /** Growth per failure; 2 unless given. */
  factor?: number
  /** Share of the delay that is random, 0 to 1; 0.5 unless given. Jitter only shortens: a delay lies in [(1 - jitter) * d, d]. */
  jitter?: number
  /** In [0, 1), as Math.random. */
  random?: () => number
}

export interface Backoff {
  /** Counts one failure and says how long to wait before the next attempt. */
  next(): number
  /** To be called after a success. */
  reset(): void
  /** Failures since the start or the last reset. */
  readonly failures: number
}

/** Exponential back-off with a cap. It never gives up: a caller that wants a limit looks at `failures`. */
export function createBackoff(options: BackoffOptions): Backoff {
  const { baseMs, maxMs, factor = 2, jitter = 0.5, random = Math.random } = options
  demand(baseMs >= 0 && Number.isFinite(maxMs) && maxMs >= baseMs, '0 <= baseMs <= maxMs < Infinity', options)
  demand(Number.isFinite(factor) && factor >= 1, '1 <= factor < Infinity', options)
  demand(jitter >= 0 && jitter <= 1, '0 <= jitter <= 1', options)

  let failures = 0
  let delay = baseMs
  return {
    next() {
      const current = delay
      delay = Math.min(maxMs, delay * factor)
      failures++
      return current * (1 - jitter * random())
    },
    reset() {
      failures = 0
      delay = baseMs
    },
    get failures() {
      return failures
    },
  }
}

function demand(holds: boolean, rule: string, options: BackoffOptions): void {
  if (!holds) throw new RangeError(`back-off needs ${rule}, got ${JSON.stringify(options)}`)
}
