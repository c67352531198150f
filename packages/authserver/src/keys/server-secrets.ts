import { createHmac, hkdfSync, randomBytes, timingSafeEqual } from 'node:crypto'
import { readFile } from 'node:fs/promises'
import { ThvError } from '@thv/kernel/errors'
import { mountedPath } from '@thv/kernel/mounted-path'
import { createRecordCipher, type RecordCipher } from '@thv/store/redis/record-cipher'

/** Keys that an authorization server derives from its secrets. The first secret is current; the others still open and verify. */
export interface ServerSecrets {
  /** Seals under a key of its own for each purpose. */
  cipher(purpose: string): RecordCipher
  /** Base64url, with the current secret. */
  sign(purpose: string, text: string): string
  /** In constant time, with any secret. */
  verifies(purpose: string, text: string, signature: string): boolean
  /** Of the library's cookies. */
  readonly cookieKeys: readonly string[]
}

const MIN_BYTES = 32

/** Throws `run_config_invalid` naming the file. */
export async function loadServerSecrets(files: readonly string[]): Promise<ServerSecrets> {
  return serverSecrets(await Promise.all(files.map(readSecret)))
}

/** Of this process only. */
export function ephemeralServerSecrets(): ServerSecrets {
  return serverSecrets([randomBytes(MIN_BYTES)])
}

async function readSecret(path: string): Promise<Buffer> {
  const problem = (text: string, cause?: unknown) =>
    new ThvError('run_config_invalid', `embedded_auth_server_config.hmac_secret_files: ${path} ${text}`, { cause })
  const bytes = await readFile(mountedPath(path)).catch((cause: unknown) => {
    throw problem('cannot be read', cause)
  })
  // A line end comes with most editors, and is no part of a secret.
  const trimmed = bytes.at(-1) === 0x0a ? bytes.subarray(0, -1) : bytes
  if (trimmed.length < MIN_BYTES) throw problem(`must have at least ${MIN_BYTES} bytes`)
  return trimmed
}

function serverSecrets(secrets: readonly Buffer[]): ServerSecrets {
  const derived = (purpose: string) => secrets.map((secret) => Buffer.from(hkdfSync('sha256', secret, '', `thv-authserver ${purpose}`, 32)))
  const known = new Map<string, readonly Buffer[]>()
  const keysOf = (purpose: string) => {
    const keys = known.get(purpose) ?? derived(purpose)
    known.set(purpose, keys)
    return keys
  }
  const mac = (key: Buffer, text: string) => createHmac('sha256', key).update(text).digest()
  return {
    cipher: (purpose) => createRecordCipher(keysOf(purpose).map((key) => key.toString('base64'))),
    sign: (purpose, text) => mac(keysOf(purpose)[0] ?? Buffer.alloc(0), text).toString('base64url'),
    verifies(purpose, text, signature) {
      const given = Buffer.from(signature, 'base64url')
      return keysOf(purpose).some((key) => {
        const expected = mac(key, text)
        return expected.length === given.length && timingSafeEqual(expected, given)
      })
    },
    cookieKeys: keysOf('cookies').map((key) => key.toString('base64')),
  }
}
