import { readFile } from 'node:fs/promises'
import { type Clock, systemClock } from '@thv/kernel/clock'
import { type ErrorCode, ThvError } from '@thv/kernel/errors'
import { createSingleFlight } from '@thv/kernel/single-flight'
import { type AuthSource, isTokenText } from '../client/connection.ts'

export interface TokenFileOptions {
  readonly path: string
  /** The error for a missing or unusable file. */
  readonly errorCode: ErrorCode
  readonly clock?: Clock | undefined
  readonly maxAgeMs?: number | undefined
}

/**
 * A bearer token that something else renews in a file (a projected service account token lives an hour, less on some clusters).
 * Read again at most once a minute, and at once after a 401. When the once-a-minute reading fails the last token stays in use:
 * it is most likely still good, and a 401 brings the failure to light.
 */
export function tokenFile({ path, errorCode, clock = systemClock, maxAgeMs = 60_000 }: TokenFileOptions): AuthSource {
  const flight = createSingleFlight<string, string>()
  let held: { header: string; readAt: number } | undefined
  let refused = false

  async function read(): Promise<string> {
    const wasRefused = refused
    refused = false
    try {
      const token = (await readFile(path, 'utf8')).trim()
      if (!isTokenText(token)) throw new ThvError(errorCode, `${path} does not hold a token`)
      held = { header: `Bearer ${token}`, readAt: clock.monotonic() }
      return held.header
    } catch (error) {
      if (held === undefined || wasRefused) {
        refused = wasRefused
        throw error instanceof ThvError ? error : new ThvError(errorCode, `the token file ${path} cannot be read`, { cause: error })
      }
      held.readAt = clock.monotonic()
      return held.header
    }
  }

  return {
    async header() {
      const isFresh = held !== undefined && !refused && clock.monotonic() - held.readAt < maxAgeMs
      return isFresh && held !== undefined ? held.header : await flight.run(path, read)
    },
    invalidate() {
      refused = true
    },
  }
}
