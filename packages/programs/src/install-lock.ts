import { randomUUID } from 'node:crypto'
import { link, mkdir, readFile, rm, stat, utimes, writeFile } from 'node:fs/promises'
import { hostname } from 'node:os'
import { dirname } from 'node:path'
import { createBackoff } from '@thv/kernel/backoff'
import { type Clock, systemClock } from '@thv/kernel/clock'
import { ThvError } from '@thv/kernel/errors'

export interface InstallLockOptions {
  /** How long to wait for another holder. */
  readonly limitMs: number
  readonly signal: AbortSignal
  readonly clock?: Clock
  /** Told once when there is another holder. */
  readonly onWait?: (holder: string) => void
  /** A lock that its holder has not touched for this long is free. */
  readonly staleMs?: number
}

/**
 * Runs `work` while no other process does so under the same lock file. It saves work, no more: a process that takes a lock whose holder only
 * seemed dead does the work a second time, and `work` must bear that.
 */
export async function withInstallLock<T>(file: string, work: () => Promise<T>, options: InstallLockOptions): Promise<T> {
  const { staleMs = 30_000 } = options
  await take(file, { ...options, staleMs })
  const touch = setInterval(() => {
    const now = new Date()
    utimes(file, now, now).catch(() => clearInterval(touch)) // somebody took us for dead; they do the work again
  }, staleMs / 4)
  touch.unref()
  try {
    return await work()
  } finally {
    clearInterval(touch)
    await rm(file, { force: true })
  }
}

async function take(file: string, options: InstallLockOptions & { staleMs: number }): Promise<void> {
  const { limitMs, signal, clock = systemClock, onWait, staleMs } = options
  await mkdir(dirname(file), { recursive: true })
  const deadline = clock.monotonic() + limitMs
  const backoff = createBackoff({ baseMs: 100, maxMs: 1_000 })
  for (;;) {
    signal.throwIfAborted()
    if (await tryTake(file)) return
    const holder = await holderOf(file, staleMs)
    if (holder === undefined) continue
    if (holder.isDead) {
      await rm(file, { force: true })
      continue
    }
    if (backoff.failures === 0) onWait?.(holder.name)
    if (clock.monotonic() >= deadline) throw new ThvError('timeout', `gave up after ${limitMs} ms: ${holder.name} still holds ${file}`)
    await clock.sleep(backoff.next(), signal)
  }
}

/** The lock appears with its content, or not at all: a file that is linked is complete. */
async function tryTake(file: string): Promise<boolean> {
  const own = `${file}.${process.pid}-${randomUUID()}`
  await writeFile(own, JSON.stringify({ pid: process.pid, host: hostname() }))
  try {
    await link(own, file)
    return true
  } catch (error) {
    if (error instanceof Error && 'code' in error && error.code === 'EEXIST') return false
    throw error
  } finally {
    await rm(own, { force: true })
  }
}

async function holderOf(file: string, staleMs: number): Promise<{ name: string; isDead: boolean } | undefined> {
  try {
    const { pid, host } = JSON.parse(await readFile(file, 'utf8')) as { pid: number; host: string }
    const age = Date.now() - (await stat(file)).mtimeMs
    // Process ids of another host, or of another container, say nothing here.
    return { name: `process ${pid} on ${host}`, isDead: age > staleMs || (host === hostname() && !isAlive(pid)) }
  } catch (error) {
    if (error instanceof Error && 'code' in error && error.code === 'ENOENT') return undefined
    throw error
  }
}

function isAlive(pid: number): boolean {
  try {
    process.kill(pid, 0)
    return true
  } catch (error) {
    return !(error instanceof Error && 'code' in error && error.code === 'ESRCH')
  }
}
