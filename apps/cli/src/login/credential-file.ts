import { chmod, mkdir, readFile, rename, stat, writeFile } from 'node:fs/promises'
import { homedir } from 'node:os'
import { dirname, join } from 'node:path'
import { type CredentialStore, type Credentials, NO_CREDENTIALS } from '@thv/auth/client/credential-store'
import { ThvError } from '@thv/kernel/errors'
import { isObject } from '@thv/kernel/json'
import { withInstallLock } from '@thv/programs/install-lock'

const VERSION = 1
const LOCK_LIMIT_MS = 30_000

/** `$XDG_CONFIG_HOME/toolhive-ts/credentials.json`. */
export function credentialPath(variables: Readonly<Record<string, string | undefined>>): string {
  const config = variables['XDG_CONFIG_HOME'] || join(variables['HOME'] || homedir(), '.config')
  return join(config, 'toolhive-ts', 'credentials.json')
}

/** Tokens in a file that only its owner can read. */
export function createCredentialFile(path: string): CredentialStore {
  const read = async (): Promise<Credentials> => {
    const text = await ownText(path)
    return text === undefined ? NO_CREDENTIALS : parsed(text, path)
  }
  return {
    read,
    async update(change, signal) {
      await mkdir(dirname(path), { recursive: true, mode: 0o700 })
      const work = async () => {
        const before = await read()
        const after = await change(before)
        if (after !== before) await write(path, after)
      }
      await withInstallLock(`${path}.lock`, work, { limitMs: LOCK_LIMIT_MS, signal })
    },
  }
}

/** Undefined: there is no such file. */
async function ownText(path: string): Promise<string | undefined> {
  try {
    const { mode } = await stat(path)
    if ((mode & 0o077) !== 0) throw new ThvError('login_failed', `${path} can be read by other users: run "chmod 600 ${path}"`)
    return await readFile(path, 'utf8')
  } catch (error) {
    if (error instanceof Error && 'code' in error && error.code === 'ENOENT') return undefined
    throw error
  }
}

function parsed(text: string, path: string): Credentials {
  const unusable = new ThvError(
    'login_failed',
    `${path} is not a file of credentials that this version of thv reads: remove it and log in again`,
  )
  let value: unknown
  try {
    value = JSON.parse(text)
  } catch {
    throw unusable // the text is secret, so no parser may quote it
  }
  if (!isObject(value) || value['version'] !== VERSION || !Array.isArray(value['logins']) || !isObject(value['clients'])) throw unusable
  return { logins: value['logins'], clients: value['clients'] as Credentials['clients'] }
}

/** Complete or not at all. */
async function write(path: string, credentials: Credentials): Promise<void> {
  const staging = `${path}.${process.pid}.new`
  await writeFile(staging, `${JSON.stringify({ version: VERSION, ...credentials }, null, 2)}\n`, { mode: 0o600 })
  await chmod(staging, 0o600) // a file that was left behind keeps its mode
  await rename(staging, path)
}
