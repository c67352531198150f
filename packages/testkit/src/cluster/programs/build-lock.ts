import { randomUUID } from 'node:crypto'
import { mkdir, readdir, readFile, rename, rm, rmdir, stat, unlink, utimes, writeFile } from 'node:fs/promises'
import { hostname } from 'node:os'
import { dirname, join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { isAlive, ownIdentity, type ProcessIdentity } from '@thv/programs/process-identity'

/**
 * One builder per machine. The lock is a folder with one file in it, whose name no other owner ever uses.
 *
 * - Taking: a folder that already holds our file is renamed into place. The system refuses that while the target holds a file,
 *   so the lock appears at once and complete.
 * - Releasing, or breaking the lock of a dead owner: that one file is deleted. As its name is unique, a late breaker can never
 *   delete the lock of the next owner, which is the classic race of lock files.
 */
export interface BuildLock {
  release(): Promise<void>
}

export interface LockOptions {
  /** How long to wait for another owner before giving up. */
  readonly waitLimitMs?: number
  readonly pollMs?: number
  readonly signal?: AbortSignal | undefined
  /** Called once per wait and then about every `reportMs`. */
  readonly onWait?: (owner: LockOwner, waitedMs: number) => void
  readonly reportMs?: number
}

export interface LockOwner extends ProcessIdentity {
  readonly host: string
}

/** Process ids of another host (or container) say nothing here; such an owner must touch its file now and then. */
const foreignStaleMs = 120_000
const touchMs = 15_000

export async function takeBuildLock(folder: string, options: LockOptions = {}): Promise<BuildLock> {
  const { waitLimitMs = 45 * 60_000, pollMs = 500, reportMs = 30_000 } = options
  const begin = performance.now()
  let nextReport = 0
  await mkdir(dirname(folder), { recursive: true })
  for (;;) {
    options.signal?.throwIfAborted()
    const file = await tryTake(folder)
    if (file) return held(folder, file)

    const holder = await currentHolder(folder)
    if (!holder) continue
    if (holder.stale) {
      await unlink(holder.file).catch(ignoring('ENOENT'))
      continue
    }
    const waited = performance.now() - begin
    if (waited > waitLimitMs)
      throw new Error(`gave up after ${Math.round(waited / 1000)} s: ${describeOwner(holder.owner)} still holds ${folder}`)
    if (waited >= nextReport) {
      options.onWait?.(holder.owner, waited)
      nextReport = waited + reportMs
    }
    await sleep(pollMs * (0.75 + Math.random() / 2), undefined, { signal: options.signal }).catch((error: unknown) => {
      options.signal?.throwIfAborted()
      throw error
    })
  }
}

export function describeOwner(owner: LockOwner): string {
  return `process ${owner.pid} on ${owner.host}`
}

/** The path of our file inside the lock, or undefined when somebody else holds it. */
async function tryTake(folder: string): Promise<string | undefined> {
  const name = `${process.pid}-${randomUUID()}`
  const staging = `${folder}.${name}`
  const owner: LockOwner = { ...ownIdentity(), host: hostname() }
  try {
    await mkdir(staging)
    await writeFile(join(staging, name), JSON.stringify(owner))
    await rename(staging, folder)
    return join(folder, name)
  } catch (error) {
    await rm(staging, { recursive: true, force: true })
    // ENOENT: the present holder swept our staging folder away as a leftover.
    if (['ENOTEMPTY', 'EEXIST', 'ENOENT'].includes(codeOf(error))) return undefined
    throw error
  }
}

function held(folder: string, file: string): BuildLock {
  const touch = setInterval(() => void utimes(file, new Date(), new Date()).catch(ignoring('ENOENT')), touchMs)
  touch.unref()
  return {
    release: async () => {
      clearInterval(touch)
      await unlink(file).catch(ignoring('ENOENT'))
      await rmdir(folder).catch(ignoring('ENOENT', 'ENOTEMPTY', 'EEXIST'))
    },
  }
}

async function currentHolder(folder: string): Promise<{ file: string; owner: LockOwner; stale: boolean } | undefined> {
  try {
    const [name] = await readdir(folder)
    if (name === undefined) return undefined
    const file = join(folder, name)
    const owner = JSON.parse(await readFile(file, 'utf8')) as LockOwner
    const age = Date.now() - (await stat(file)).mtimeMs
    return { file, owner, stale: owner.host === hostname() ? !isAlive(owner) : age > foreignStaleMs }
  } catch (error) {
    if (codeOf(error) === 'ENOENT') return undefined
    throw error
  }
}

function ignoring(...codes: string[]): (error: unknown) => void {
  return (error) => {
    if (!codes.includes(codeOf(error))) throw error
  }
}

function codeOf(error: unknown): string {
  return (error as NodeJS.ErrnoException).code ?? ''
}
