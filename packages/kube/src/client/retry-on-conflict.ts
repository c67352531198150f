import { type BackoffOptions, createBackoff } from '@thv/kernel/backoff'
import { type Clock, systemClock } from '@thv/kernel/clock'

export interface ConflictRetryOptions {
  /** The first one included. Default 6. */
  maxAttempts?: number | undefined
  backoff?: BackoffOptions | undefined
  clock?: Clock | undefined
  signal?: AbortSignal | undefined
}

/**
 * Runs `attempt` until it does not throw what `isConflict` knows. `attempt` receives its number, from 1, and must read fresh state from
 * the second on. After the last one the conflict is thrown.
 */
export async function retryOnConflict<R>(
  attempt: (number: number) => Promise<R>,
  isConflict: (error: unknown) => boolean,
  options: ConflictRetryOptions = {},
): Promise<R> {
  const { maxAttempts = 6, clock = systemClock, signal } = options
  const backoff = createBackoff(options.backoff ?? { baseMs: 20, maxMs: 1_000 })
  for (let number = 1; ; number++) {
    signal?.throwIfAborted()
    try {
      return await attempt(number)
    } catch (error) {
      if (number >= maxAttempts || !isConflict(error)) throw error
    }
    await clock.sleep(backoff.next(), signal)
  }
}
