import { spawnSync } from 'node:child_process'
import { existsSync, mkdirSync, mkdtempSync, readdirSync, rmSync, utimesSync, writeFileSync } from 'node:fs'
import { hostname, tmpdir } from 'node:os'
import { join } from 'node:path'
import { ownIdentity } from '@thv/programs/process-identity'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { describeOwner, type LockOwner, takeBuildLock } from './build-lock.ts'

let folder: string
let lockFolder: string
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'lock-test-'))
  lockFolder = join(folder, 'deep', 'x.lock')
})
afterEach(() => rmSync(folder, { recursive: true }))

describe('build lock', () => {
  test('taken, released, taken again; nothing stays behind', async () => {
    for (let round = 0; round < 2; round++) {
      const lock = await takeBuildLock(lockFolder)
      expect(readdirSync(lockFolder)).toHaveLength(1)
      await lock.release()
    }
    expect(readdirSync(join(folder, 'deep'))).toEqual([])
  })

  test('never held twice, and everybody gets it', async () => expect(await mostHolders(20)).toBe(1))

  test('the lock of a dead process is broken, and of many breakers one gets it at a time', async () => {
    const dead = { ...deadProcess(), host: hostname() }
    for (let round = 0; round < 20; round++) {
      plant(dead)
      expect(await mostHolders(8)).toBe(1)
    }
  })

  test('a reused process id does not keep the lock', async () => {
    plant({ pid: process.pid, start: 'long ago', host: hostname() })
    const lock = await takeBuildLock(lockFolder, { waitLimitMs: 0 })
    expect(readdirSync(lockFolder)).toHaveLength(1)
    await lock.release()
  })

  test('a live owner is waited for up to the limit', async () => {
    const lock = await takeBuildLock(lockFolder)
    const waiting = takeBuildLock(lockFolder, { waitLimitMs: 50, pollMs: 5 })
    await expect(waiting).rejects.toThrow(`process ${process.pid} on ${hostname()} still holds`)
    await lock.release()
  })

  test('waiting is reported again and again, with the owner', async () => {
    const lock = await takeBuildLock(lockFolder)
    const reports: string[] = []
    const stop = new AbortController()
    const onWait: NonNullable<Parameters<typeof takeBuildLock>[1]>['onWait'] = (owner) => {
      reports.push(describeOwner(owner))
      if (reports.length === 3) stop.abort(new Error('enough'))
    }
    const waiting = takeBuildLock(lockFolder, { signal: stop.signal, pollMs: 5, reportMs: 10, onWait })
    await expect(waiting).rejects.toThrow('enough')
    expect(reports).toHaveLength(3)
    expect(new Set(reports)).toEqual(new Set([`process ${process.pid} on ${hostname()}`]))
    await lock.release()
  })

  test('waiting ends with the signal, for its reason', async () => {
    const lock = await takeBuildLock(lockFolder)
    const stop = new AbortController()
    const waiting = takeBuildLock(lockFolder, { signal: stop.signal, onWait: () => setTimeout(() => stop.abort(new Error('enough')), 5) })
    await expect(waiting).rejects.toThrow('enough')
    await lock.release()
  })

  test('an owner on another host counts as alive as long as it touches its file', async () => {
    const file = plant({ pid: 1, start: '1', host: 'elsewhere' })
    await expect(takeBuildLock(lockFolder, { waitLimitMs: 0, pollMs: 1 })).rejects.toThrow('on elsewhere still holds')
    const old = new Date(Date.now() - 600_000)
    utimesSync(file, old, old)
    await (await takeBuildLock(lockFolder, { waitLimitMs: 0 })).release()
    expect(existsSync(file)).toBe(false)
  })

  test('a late release does not free the lock of the next owner', async () => {
    const first = await takeBuildLock(lockFolder)
    await first.release()
    const second = await takeBuildLock(lockFolder)
    await first.release()
    await expect(takeBuildLock(lockFolder, { waitLimitMs: 0, pollMs: 1 })).rejects.toThrow('still holds')
    await second.release()
  })
})

/** How many of so many contenders held the lock at the same time. */
async function mostHolders(contenders: number): Promise<number> {
  let holders = 0
  let most = 0
  const turn = async () => {
    const lock = await takeBuildLock(lockFolder, { pollMs: 1 })
    most = Math.max(most, ++holders)
    await new Promise((resolve) => setTimeout(resolve, 3))
    holders--
    await lock.release()
  }
  await Promise.all(Array.from({ length: contenders }, turn))
  return most
}

function plant(owner: LockOwner): string {
  mkdirSync(lockFolder, { recursive: true })
  const file = join(lockFolder, `${owner.pid}-planted`)
  writeFileSync(file, JSON.stringify(owner))
  return file
}

function deadProcess() {
  const { pid } = spawnSync(process.execPath, ['-e', ''])
  return { pid, start: ownIdentity().start }
}
