import type { HeaderMap } from '@thv/http/header-map'
import { createBackoff } from '@thv/kernel/backoff'
import type { Clock } from '@thv/kernel/clock'
import { ThvError } from '@thv/kernel/errors'

/** How one connection of an event stream ended. */
export interface StreamEnd {
  /** 0 when there was no answer. */
  readonly status: number
  readonly headers: HeaderMap
  readonly isStream: boolean
  readonly lastEventId: string
  readonly retry: number | undefined
  /** The connection broke, or was never there. */
  readonly error?: unknown
}

export interface FollowOptions {
  /** One GET to its end. Rejects only with what no other attempt could mend. */
  get(lastEventId: string): Promise<StreamEnd>
  /** Where the stream broke off, if it had begun already. */
  readonly from?: Pick<StreamEnd, 'lastEventId' | 'retry'>
  readonly clock: Clock
  readonly signal: AbortSignal
  /** Failed attempts in a row. */
  readonly maxFailures: number
  /** Asked after each connection: what the stream was read for is there. */
  isDone?(): boolean
}

/**
 * Reads an event stream over as many connections as it takes: each goes on behind the last event, not before the time that
 * the server asked for. A connection that ends is no failure: that is how a server makes a client poll. Returns when it is done, or
 * the server refuses.
 */
export async function followStream({ get, from, clock, signal, maxFailures, isDone }: FollowOptions): Promise<StreamEnd> {
  const backoff = createBackoff({ baseMs: 500, maxMs: 30_000 })
  let lastEventId = from?.lastEventId ?? ''
  let retry = from?.retry
  let wait = from === undefined ? 0 : pauseOf(retry)
  for (;;) {
    if (wait > 0) await clock.sleep(wait, signal)
    const end = await get(lastEventId)
    if (isDone?.()) return end
    signal.throwIfAborted()
    lastEventId = end.lastEventId || lastEventId
    retry = end.retry ?? retry
    if (end.isStream && end.error === undefined) {
      backoff.reset()
      wait = pauseOf(retry)
    } else if (!isPassing(end)) {
      return end
    } else {
      wait = Math.max(pauseOf(retry), backoff.next())
      if (backoff.failures > maxFailures)
        throw new ThvError('mcp_stream_broken', 'the stream broke off and could not be resumed', { cause: end.error })
    }
  }
}

/** Trouble that may be over at the next attempt. */
function isPassing({ status, error }: StreamEnd): boolean {
  return error !== undefined || status === 408 || status === 429 || status >= 500
}

/** The delay that the server asked for, within limits. */
function pauseOf(retry: number | undefined): number {
  return Math.min(Math.max(retry ?? DEFAULT_PAUSE_MS, MIN_PAUSE_MS), MAX_PAUSE_MS)
}

const DEFAULT_PAUSE_MS = 1_000
const MIN_PAUSE_MS = 20
const MAX_PAUSE_MS = 3_600_000
