import { createHmac, hkdfSync, randomBytes, timingSafeEqual } from 'node:crypto'
import { readFile } from 'node:fs/promises'
import { ThvError } from '@thv/kernel/errors'
import { mountedPath } from '@thv/kernel/mounted-path'
import { createRecordCipher, type RecordCipher } from '@thv/store/redis/record-cipher'
import { consistently } from './consistent-files.ts'

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
  /** Reads the files again; what was made of these secrets follows. True: they differ. Rejects as `loadServerSecrets`, and the old ones stay. */
  reload(): Promise<boolean>
}

const MIN_BYTES = 32

/** Throws `run_config_invalid` naming the file. */
export async function loadServerSecrets(files: readonly string[]): Promise<ServerSecrets> {
  const paths = files.map((file) => mountedPath(file))
  const read = () => consistently(paths, () => Promise.all(files.map(readSecret)))
  return serverSecrets(await read(), read)
}

/** Of this process only. */
export function ephemeralServerSecrets(): ServerSecrets {
  const secrets = [randomBytes(MIN_BYTES)]
  return serverSecrets(secrets, async () => secrets)
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

/** Keys that were derived, until the secrets are replaced. */
class DerivedKeys {
  readonly secrets: readonly Buffer[]
  readonly #keys = new Map<string, readonly Buffer[]>()
  readonly #ciphers = new Map<string, RecordCipher>()

  constructor(secrets: readonly Buffer[]) {
    this.secrets = secrets
  }

  of(purpose: string): readonly Buffer[] {
    const derive = (secret: Buffer) => Buffer.from(hkdfSync('sha256', secret, '', `thv-authserver ${purpose}`, 32))
    const keys = this.#keys.get(purpose) ?? this.secrets.map(derive)
    this.#keys.set(purpose, keys)
    return keys
  }

  cipher(purpose: string): RecordCipher {
    const cipher = this.#ciphers.get(purpose) ?? createRecordCipher(this.of(purpose).map((key) => key.toString('base64')))
    this.#ciphers.set(purpose, cipher)
    return cipher
  }
}

function serverSecrets(secrets: readonly Buffer[], read: () => Promise<readonly Buffer[]>): ServerSecrets {
  let derived = new DerivedKeys(secrets)
  const mac = (key: Buffer, text: string) => createHmac('sha256', key).update(text).digest()
  return {
    cipher: (purpose) => ({
      seal: (text, place) => derived.cipher(purpose).seal(text, place),
      open: (sealed, place) => derived.cipher(purpose).open(sealed, place),
    }),
    sign: (purpose, text) => mac(derived.of(purpose)[0] ?? Buffer.alloc(0), text).toString('base64url'),
    verifies(purpose, text, signature) {
      const given = Buffer.from(signature, 'base64url')
      return derived.of(purpose).some((key) => {
        const expected = mac(key, text)
        return expected.length === given.length && timingSafeEqual(expected, given)
      })
    },
    get cookieKeys() {
      return derived.of('cookies').map((key) => key.toString('base64'))
    },
    async reload() {
      const next = await read()
      const isSame = next.length === derived.secrets.length && next.every((secret, index) => derived.secrets[index]?.equals(secret))
      if (!isSame) derived = new DerivedKeys(next)
      return !isSame
    },
  }
}
