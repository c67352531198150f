import { createBackoff } from '@thv/kernel/backoff'
import type { Clock } from '@thv/kernel/clock'
import type { JsonObject } from '@thv/mcp/json-rpc'
import type { Member } from '../members/member.ts'
import { mayRepeat, type RetryPolicy } from './retry-policy.ts'

export interface Sending {
  readonly clock: Clock
  /** Asked for after a failure only: a signal for each call costs more than the rest of it. */
  signal(): AbortSignal
  /** Undefined: a failed call is not sent again. */
  readonly retry: RetryPolicy | undefined
  readonly isIdempotent: boolean
}

const MAX_BACKOFF_MS = 10_000

/** Sends a request to a backend, again where the configuration says so. Its health hears of every attempt. */
export async function sendRequest<T = JsonObject>(member: Member, attempt: () => Promise<T>, sending: Sending): Promise<T> {
  const { clock, retry, isIdempotent } = sending
  const backoff =
    retry === undefined ? undefined : createBackoff({ baseMs: retry.backoffMs, maxMs: Math.max(retry.backoffMs, MAX_BACKOFF_MS) })
  for (let attempts = 1; ; attempts++) {
    try {
      return await member.observed(attempt)
    } catch (error) {
      const signal = sending.signal()
      const isOver = retry === undefined || backoff === undefined || attempts >= retry.attempts || signal.aborted
      if (isOver || !mayRepeat(error, retry, isIdempotent)) throw error
      await clock.sleep(backoff.next(), signal)
    }
  }
}
