import { createHash, randomBytes, timingSafeEqual } from 'node:crypto'
import { mkdir, writeFile } from 'node:fs/promises'
import { dirname } from 'node:path'
import { readBearer } from '@thv/auth/incoming/bearer'
import { bearerChallenge } from '@thv/auth/incoming/challenge'
import { readSmallFile } from '@thv/catalog/sources/fetch/small-file'
import type { Exchange } from '@thv/http/server/exchange'
import { errorMessage, ThvError } from '@thv/kernel/errors'
import type { Logger } from '@thv/telemetry/log'
import { type Access, type Caller, openAccess } from '../api/http/access-port.ts'
import { sendApiError } from '../api/http/api-error.ts'
import { publicCaller } from './caller.ts'

const REALM = 'mcp-registry'
const NEEDED = 'writing needs the token in the file of auth.writeTokenFile as a bearer token'

/** Everybody may read, and who has the token in a file may write. The file is read for every write, so a new token counts at once. */
export function writeTokenAccess(path: string, log: Logger): Access {
  async function authenticate(exchange: Exchange): Promise<Caller | undefined> {
    let token: string
    try {
      token = (await readSmallFile({ path, label: 'auth.writeTokenFile' })).toString('utf8').trim()
    } catch (error) {
      log.error('auth.writeTokenFile cannot be read; writes are refused', { error: errorMessage(error) })
      sendApiError(exchange, 503, { error: 'writes are refused: the token file of the server cannot be read' })
      return undefined
    }
    const given = readBearer(exchange.headers['authorization'] as string | undefined)
    if (typeof given === 'object' && token !== '' && sameText(given.token, token)) return writer
    const error = given === 'missing' ? undefined : 'invalid_token'
    const challenge = bearerChallenge({ realm: REALM, error, description: NEEDED })
    sendApiError(exchange, 401, { error: NEEDED, ...(error && { code: error }), headers: ['WWW-Authenticate', challenge] })
    return undefined
  }

  return {
    ...openAccess,
    writesNeedToken: true,
    authenticate: (exchange, needed) => (needed === undefined ? publicCaller : authenticate(exchange)),
    hasRole: (caller, role) => caller.roles.has(role),
  }
}

const writer: Caller = { ...publicCaller, roles: new Set(['superAdmin', 'manageSources', 'manageRegistries', 'manageEntries']) }

/** A token for the owner of the data folder, unless there is one. */
export async function ensureWriteToken(path: string): Promise<void> {
  try {
    await mkdir(dirname(path), { recursive: true, mode: 0o700 })
    await writeFile(path, `${randomBytes(32).toString('base64url')}\n`, { mode: 0o600, flag: 'wx' })
  } catch (cause) {
    if ((cause as NodeJS.ErrnoException).code === 'EEXIST') return
    throw new ThvError('store_unavailable', `the token for writes cannot be stored in ${path}: ${errorMessage(cause)}`, { cause })
  }
}

/** In the same time whatever the first difference is. */
function sameText(given: string, wanted: string): boolean {
  const digest = (text: string) => createHash('sha256').update(text).digest()
  return timingSafeEqual(digest(given), digest(wanted))
}
