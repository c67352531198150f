import type { Clock } from '@thv/kernel/clock'
import type { RequestId } from '@thv/mcp/json-rpc'
import type { Noise } from '@thv/mcp/line-framer'
import type { Log } from '@thv/telemetry/log'

/** A server that prints on every call must not fill the log. */
export class NoiseLog {
  readonly #log: Log
  readonly #clock: Clock
  #lastAt = Number.NEGATIVE_INFINITY
  #suppressed = 0

  constructor(log: Log, clock: Clock) {
    this.#log = log
    this.#clock = clock
  }

  /** Parts of messages are not shown: they could be any client's data. */
  add({ reason, preview }: Noise): void {
    const now = this.#clock.monotonic()
    if (now - this.#lastAt < NOISE_LOG_MS) {
      this.#suppressed++
      return
    }
    this.#log.warn('the server wrote a line that is no message', {
      reason,
      suppressed: this.#suppressed,
      ...(preview.trimStart().startsWith('{') ? {} : { preview }),
    })
    this.#lastAt = now
    this.#suppressed = 0
  }
}

/**
 * Of the call that it should have answered, if that can be seen. Of a line that was cut off only the very beginning counts: further in
 * the text may be part of a payload.
 */
export function idOf({ id, preview }: Noise): RequestId | undefined {
  const found = /^\s*\{\s*(?:"jsonrpc"\s*:\s*"2\.0"\s*,\s*)?"id"\s*:\s*"([\w.-]{1,64})"/.exec(preview)?.[1]
  return id ?? found
}

const NOISE_LOG_MS = 10_000
