import { spawnSync } from 'node:child_process'
import { readdir, utimes, writeFile } from 'node:fs/promises'
import { hostname } from 'node:os'
import { join } from 'node:path'
import { isThvError } from '@thv/kernel/errors'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { type InstallLockOptions, withInstallLock } from './install-lock.ts'
import { type TestFolder, testFolder } from './testing/program-fixtures.ts'

const NEVER = new AbortController().signal

describe('withInstallLock', () => {
  let folder: TestFolder
  let file: string
  beforeEach(async () => {
    folder = await testFolder()
    file = join(folder.path, 'below', 'it.lock')
  })
  afterEach(() => folder[Symbol.asyncDispose]())

  const locked = <T>(work: () => Promise<T>, more: Partial<InstallLockOptions> = {}) =>
    withInstallLock(file, work, { limitMs: 20_000, signal: NEVER, ...more })

  it('lets one at a time in, and leaves nothing behind', async () => {
    let inside = 0
    let most = 0
    const waits: string[] = []
    const work = async () => {
      most = Math.max(most, ++inside)
      await new Promise((resolve) => setTimeout(resolve, 20))
      inside--
    }
    await Promise.all([1, 2, 3, 4].map(() => locked(work, { onWait: (holder) => waits.push(holder) })))
    expect(most).toBe(1)
    expect(waits).toContain(`process ${process.pid} on ${hostname()}`)
    expect(await readdir(join(folder.path, 'below'))).toEqual([])
  })

  it('is free again after work that failed', async () => {
    await expect(locked(() => Promise.reject(new Error('no')))).rejects.toThrow('no')
    await expect(locked(async () => 'yes')).resolves.toBe('yes')
  })

  it('takes the lock of a process that is dead, at once', async () => {
    await locked(async () => {}) // makes the folder
    const { pid } = spawnSync(process.execPath, ['-e', ''])
    await writeFile(file, JSON.stringify({ pid, host: hostname() }))
    await expect(locked(async () => 'mine', { onWait: () => expect.unreachable('it waited') })).resolves.toBe('mine')
  })

  it('waits for the holder of another machine until its lock is old', async () => {
    await locked(async () => {})
    await writeFile(file, JSON.stringify({ pid: 1, host: 'elsewhere' }))
    const error = await locked(async () => 'mine', { limitMs: 300 }).catch((e: unknown) => e)
    expect(isThvError(error, 'timeout')).toBe(true)
    expect(String(error)).toContain('process 1 on elsewhere')
    await utimes(file, new Date(0), new Date(0))
    await expect(locked(async () => 'mine')).resolves.toBe('mine')
  })

  it('ends its wait when told to', async () => {
    const stop = new AbortController()
    await locked(async () => {
      const waiting = locked(async () => {}, { signal: stop.signal })
      stop.abort(new Error('stopped'))
      await expect(waiting).rejects.toThrow('stopped')
    })
  })
})
