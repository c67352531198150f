import { createHash, randomBytes } from 'node:crypto'
import { mkdir, readdir, readlink, rename, rm, symlink, writeFile } from 'node:fs/promises'
import { dirname, join } from 'node:path'

export interface PayloadFile {
  readonly bytes: Uint8Array
  readonly mode: number
}

/** Files of a volume by their path in it. */
export type Payload = ReadonlyMap<string, PayloadFile>

const DATA = '..data'

/** Why a path may not be a file of a volume. */
export function pathProblem(path: string): string | undefined {
  if (path === '' || path.startsWith('/')) return 'must be a relative path'
  if (path.includes('\0') || path.length > 4_096) return 'must be a path that a file can have'
  const parts = path.split('/')
  if (parts.some((part) => part === '..' || part === '.' || part === '')) return "must not contain '..', '.' or an empty name"
  return path.startsWith('..') ? "must not start with '..'" : undefined
}

/**
 * Makes the folder show exactly these files. All change at one moment: the files lie in a folder of their own, `..data` leads to it,
 * and what a program sees are links through `..data`. False when nothing was to be done.
 */
export async function writePayload(folder: string, payload: Payload): Promise<boolean> {
  const name = `..${hashOf(payload)}`
  await mkdir(folder, { recursive: true, mode: 0o700 })
  const before = await readlink(join(folder, DATA)).catch(() => undefined) // none yet
  if (before === name) return false
  const target = join(folder, name)
  await rm(target, { recursive: true, force: true }) // of an attempt that did not come to its end
  await mkdir(target, { mode: 0o700 })
  for (const [path, file] of payload) {
    await mkdir(dirname(join(target, path)), { recursive: true, mode: 0o700 })
    await writeFile(join(target, path), file.bytes, { mode: file.mode })
  }
  const temporary = join(folder, `${DATA}_${randomBytes(4).toString('hex')}`)
  await symlink(name, temporary)
  await rename(temporary, join(folder, DATA))
  await showNames(folder, new Set([...payload.keys()].map((path) => path.split('/')[0] ?? path)))
  if (before !== undefined) await rm(join(folder, before), { recursive: true, force: true })
  return true
}

async function showNames(folder: string, wanted: ReadonlySet<string>): Promise<void> {
  for (const name of await readdir(folder)) {
    if (wanted.has(name) || name.startsWith('..')) continue
    const leads = await readlink(join(folder, name)).catch(() => '') // not a link, so not one of ours
    if (leads === `${DATA}/${name}`) await rm(join(folder, name), { force: true })
  }
  for (const name of wanted) {
    await symlink(`${DATA}/${name}`, join(folder, name)).catch((error: NodeJS.ErrnoException) => {
      if (error.code !== 'EEXIST') throw error
    })
  }
}

function hashOf(payload: Payload): string {
  const hash = createHash('sha256')
  for (const [path, { bytes, mode }] of [...payload].sort(([a], [b]) => (a < b ? -1 : 1))) {
    hash.update(`${path.length}:${path}:${mode}:${bytes.length}:`)
    hash.update(bytes)
  }
  return hash.digest('hex').slice(0, 32)
}
