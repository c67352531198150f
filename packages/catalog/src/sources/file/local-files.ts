import { constants } from 'node:fs'
import { type FileHandle, open, opendir, realpath, stat } from 'node:fs/promises'
import { join, sep } from 'node:path'
import { abortable } from '@thv/kernel/deadline'
import { ThvError } from '@thv/kernel/errors'
import { compareCodePoints } from '../../text.ts'
import type { FetchContext } from '../fetch/registry-handler.ts'

export interface LocalFile {
  /** Undefined when the path itself is a file. */
  readonly name: string | undefined
  /** A text says why it cannot be read. */
  readonly content: Buffer | string
}

/**
 * A file, or the `.json` files of a folder in the order of their names. Links inside a folder are followed as long as they stay in it, as
 * those of a mounted ConfigMap do; what is no regular file is never opened. Something that changes while it is read is read again.
 */
export async function readLocalFiles(path: string, context: FetchContext): Promise<LocalFile[]> {
  for (let attempt = 1; ; attempt += 1) {
    try {
      // A file system that hangs must not hold the attempt: its call goes on alone.
      return await abortable(readOnce(path, context), context.signal)
    } catch (error) {
      if (error !== CHANGED) throw localError(error, path)
      if (attempt === ATTEMPTS) throw new ThvError('source_failed', `${path} does not stop changing while it is read`)
    }
    await context.clock.sleep(attempt * 100, context.signal)
  }
}

const ATTEMPTS = 3
const MAX_FILES = 10_000
const MAX_NAMES = 100_000
const CHANGED = new Error('changed while it was read')

async function readOnce(path: string, { limits }: FetchContext): Promise<LocalFile[]> {
  const found = await stat(path)
  if (!found.isDirectory()) return [{ name: undefined, content: await readRegular(path, limits.maxBytes) }]
  const root = await realpath(path)
  const version = await mountVersion(root)
  const files: LocalFile[] = []
  let room = limits.maxBytes
  for (const name of await jsonNames(root)) {
    const content = await readInside({ root, room, maxBytes: limits.maxBytes }, name)
    if (typeof content !== 'string') room -= content.length
    files.push({ name, content })
  }
  if ((await mountVersion(root)) !== version) throw CHANGED
  return files
}

async function jsonNames(root: string): Promise<readonly string[]> {
  const names: string[] = []
  let seen = 0
  for await (const { name } of await opendir(root)) {
    seen += 1
    if (seen > MAX_NAMES) throw new ThvError('source_limit', `${root} has more than ${MAX_NAMES} names in it`)
    // Hidden ones are what editors and mounts keep for themselves.
    if (name.endsWith('.json') && !name.startsWith('.')) names.push(name)
  }
  if (names.length > MAX_FILES) throw new ThvError('source_limit', `${root} has more than ${MAX_FILES} .json files`)
  return names.sort(compareCodePoints)
}

interface Folder {
  readonly root: string
  /** Bytes that may still be read of the whole folder. */
  readonly room: number
  readonly maxBytes: number
}

/** The content, or why this file is left out. Limits of the whole folder are thrown. */
async function readInside({ root, room, maxBytes }: Folder, name: string): Promise<Buffer | string> {
  try {
    const resolved = await realpath(join(root, name))
    if (!resolved.startsWith(root.endsWith(sep) ? root : `${root}${sep}`)) return 'leads out of the folder'
    if ((await stat(resolved)).size > maxBytes) return `is larger than ${maxBytes} bytes`
    return await readRegular(resolved, room)
  } catch (error) {
    if (error === CHANGED || (error instanceof ThvError && error.code === 'source_limit')) throw error
    if (error instanceof ThvError) return error.message
    const code = systemCode(error) ?? 'unknown'
    if (!OF_THE_FILE.has(code)) throw error
    return `cannot be read (${code})`
  }
}

/** Everything else (no descriptor left, a disk that fails) passes: entries must not be taken for gone because of it. */
export const OF_THE_FILE: ReadonlySet<string> = new Set(['EACCES', 'EISDIR', 'ELOOP', 'ENOENT', 'ENOTDIR', 'ENXIO', 'EPERM'])

async function readRegular(path: string, maxBytes: number): Promise<Buffer> {
  // Before it is opened, since opening a device may do something; and again afterwards, since it may be another by then.
  if (!(await stat(path)).isFile()) throw notRegular()
  await using file = await open(path, constants.O_RDONLY | constants.O_NONBLOCK | constants.O_NOCTTY)
  const before = await file.stat()
  if (!before.isFile()) throw notRegular()
  if (before.size > maxBytes) throw new ThvError('source_limit', `${path} is larger than the ${maxBytes} bytes that are left to read`)
  const content = await readSized(file, before.size)
  const after = await file.stat()
  if (after.size !== before.size || after.mtimeMs !== before.mtimeMs) throw CHANGED
  return content
}

async function readSized(file: FileHandle, size: number): Promise<Buffer> {
  const content = Buffer.allocUnsafeSlow(size + 1)
  let length = 0
  while (length < content.length) {
    const { bytesRead } = await file.read(content, length, Math.min(content.length - length, 4 * 1024 * 1024))
    if (bytesRead === 0) break
    length += bytesRead
  }
  if (length !== size) throw CHANGED
  return content.subarray(0, size)
}

/** Kubernetes swaps this link when a mounted ConfigMap or Secret changes: half of the old and half of the new is neither. */
async function mountVersion(root: string): Promise<string> {
  try {
    return await realpath(join(root, '..data'))
  } catch (error) {
    if (systemCode(error) === 'ENOENT') return ''
    throw error
  }
}

function localError(error: unknown, path: string): unknown {
  const code = systemCode(error)
  if (code === undefined) return error instanceof ThvError && !error.message.includes(path) ? prefixed(error, path) : error
  if (code === 'ENOENT') return new ThvError('source_failed', `${path} does not exist`)
  if (code === 'EACCES' || code === 'EPERM') return new ThvError('source_failed', `${path} may not be read (${code})`)
  return new ThvError('source_failed', `${path} cannot be read (${code})`)
}

function prefixed(error: ThvError, path: string): ThvError {
  return error.code === 'source_failed' ? new ThvError('source_failed', `${path} ${error.message}`) : error
}

function notRegular(): ThvError {
  return new ThvError('source_failed', 'is not a regular file')
}

function systemCode(error: unknown): string | undefined {
  if (error instanceof ThvError || !(error instanceof Error) || !('code' in error)) return undefined
  return typeof error.code === 'string' ? error.code : undefined
}
