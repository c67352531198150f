import { readFile, stat } from 'node:fs/promises'
import type { Clock } from '@thv/kernel/clock'
import { errorMessage } from '@thv/kernel/errors'
import { mountedPath } from '@thv/kernel/mounted-path'
import { createSingleFlight } from '@thv/kernel/single-flight'
import { type Rejection, reject } from '@thv/mcp/wire-errors'
import type { Log } from '@thv/telemetry/log'
import type { Middleware } from '../pipeline/middleware.ts'
import type { Hop } from '../pipeline/request-context.ts'
import { addCredentials } from './add-credentials.ts'

export interface BearerFileDeps {
  readonly clock: Clock
  readonly log: Log
  /** The file holds another token than before, which requests carry from now on. */
  readonly onOtherToken?: (() => void) | undefined
}

const TOKEN = /^[\w.~+/-]{1,16384}=*$/
const MAX_FILE_BYTES = 64 << 10
/** A mounted Secret changes within a minute or two anyway. */
const CHECK_MS = 10_000
/** A file that was read so recently holds what the backend has just rejected, or is still missing. */
const RENEW_MS = 1_000

/**
 * Authenticates at the backend with the token in a file. The file is read again in the background while requests use the token that is
 * known, and at once when the backend rejects that.
 */
export function createBearerFile(path: string, { clock, log, onOtherToken }: BearerFileDeps): Middleware {
  const flights = createSingleFlight<'', void>()
  let headers: { authorization: string } | undefined
  /** The last one that was read, also after the backend has rejected it. */
  let last: string | undefined
  let checkAt = Number.NEGATIVE_INFINITY

  async function read(): Promise<void> {
    checkAt = clock.monotonic() + CHECK_MS
    try {
      const value = `Bearer ${await tokenIn(path)}`
      if (headers?.authorization !== value) headers = { authorization: value }
      const isOther = last !== undefined && last !== value
      last = value
      if (isOther) onOtherToken?.()
    } catch (error) {
      if (headers === undefined) checkAt = clock.monotonic() + RENEW_MS
      log.warn('could not read the token file', { path, error: errorMessage(error) })
    }
  }

  function apply(hop: Hop): Rejection | undefined {
    if (headers === undefined) return reject('credentials_refused')
    addCredentials(hop, headers)
    return undefined
  }

  async function readThenApply(hop: Hop): Promise<Rejection | undefined> {
    await flights.run('', read)
    return apply(hop)
  }

  return {
    name: 'remote-auth',
    withholds: ['authorization'],
    prepare(hop) {
      if (clock.monotonic() < checkAt) return apply(hop)
      if (headers === undefined) return readThenApply(hop)
      if (flights.size === 0) void flights.run('', read)
      return apply(hop)
    },
    credentialsRejected({ credentials }) {
      const sent = credentials?.['authorization']
      if (headers === undefined || headers.authorization !== sent) return true // it has been read again since
      if (checkAt - clock.monotonic() > CHECK_MS - RENEW_MS) return false
      headers = undefined
      checkAt = Number.NEGATIVE_INFINITY
      return true
    },
  }
}

async function tokenIn(path: string): Promise<string> {
  const place = mountedPath(path)
  const { size } = await stat(place)
  if (size > MAX_FILE_BYTES) throw new RangeError(`larger than ${MAX_FILE_BYTES} bytes`)
  const token = (await readFile(place, 'utf8')).trim()
  if (!TOKEN.test(token)) throw new TypeError('the file holds no token')
  return token
}
