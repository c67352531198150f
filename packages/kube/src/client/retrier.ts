import { createBackoff } from '@thv/kernel/backoff'
import type { Clock } from '@thv/kernel/clock'
import type { CallScope } from './call-scope.ts'
import { KubeApiError } from './kube-api-error.ts'
import { isTransient } from './unreachable.ts'

export interface RetryOptions {
  /** The first one included. Default 5. */
  maxAttempts?: number
  baseMs?: number
  maxMs?: number
  /** The server's Retry-After is honoured up to this. Default 10 s. */
  retryAfterCapMs?: number
  random?: () => number
}

export interface Retrier {
  run<T>(call: RetriedCall<T>): Promise<T>
}

export interface RetriedCall<T> {
  readonly scope: CallScope
  /** May be sent again although it is unknown whether the server has seen it. */
  readonly idempotent: boolean
  readonly attempt: () => Promise<T>
  readonly onUnauthorized: () => void
}

/**
 * Tries again only what is safe and likely to help: a request that the server refused while naming a time (429 and 503 with
 * Retry-After, any verb), a broken connection (reads only), and one 401 (the token may just have been renewed). Everything else,
 * and the last failure when attempts or time run out, goes to the caller.
 */
export function createRetrier(clock: Clock, options: RetryOptions = {}): Retrier {
  const { maxAttempts = 5, baseMs = 200, maxMs = 5_000, retryAfterCapMs = 10_000, random } = options

  return {
    async run({ scope, idempotent, attempt, onUnauthorized }) {
      const backoff = createBackoff({ baseMs, maxMs, ...(random && { random }) })
      let renewed = false
      for (let tries = 1; ; tries++) {
        try {
          return await attempt()
        } catch (error) {
          if (isUnauthorized(error) && !renewed) {
            renewed = true
            tries -= 1
            onUnauthorized()
            continue
          }
          const wait = waitBefore(error, idempotent)
          if (wait === undefined || tries >= maxAttempts || wait >= scope.remainingMs()) throw error
          await clock.sleep(wait, scope.signal)
        }
      }

      /** The server's time plus our own jittered one, so that a "0" is no busy loop and clients do not come back all at once. */
      function waitBefore(error: unknown, mayRepeat: boolean): number | undefined {
        if (isRefusedForNow(error)) return Math.min((error.retryAfterSeconds ?? 0) * 1000, retryAfterCapMs) + backoff.next()
        return mayRepeat && isTransient(error) ? backoff.next() : undefined
      }
    },
  }
}

function isUnauthorized(error: unknown): boolean {
  return error instanceof KubeApiError && error.status === 401
}

function isRefusedForNow(error: unknown): error is KubeApiError {
  return error instanceof KubeApiError && (error.status === 429 || error.status === 503) && error.retryAfterSeconds !== undefined
}
