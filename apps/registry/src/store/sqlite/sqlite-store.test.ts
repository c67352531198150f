import { createHash } from 'node:crypto'
import { chmodSync, existsSync, mkdtempSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { type Clock, systemClock, TestClock } from '@thv/kernel/clock'
import { errorMessage, isThvError } from '@thv/kernel/errors'
import { afterEach, describe, expect, it } from 'vitest'
import type { RegistryStore } from '../registry-store.ts'
import {
  changed,
  contents,
  entry,
  file,
  lease,
  managed,
  never,
  only,
  rowsAfter,
  sourceOf,
  sync,
  unchanged,
} from '../testing/contract/contract-tools.ts'
import type { DatabaseOptions } from './database.ts'
import { SCHEMA_VERSION } from './schema.ts'
import { openSqliteStore } from './sqlite-store.ts'

const folders: string[] = []
const stores: RegistryStore[] = []

afterEach(async () => {
  for (const store of stores.splice(0)) await store[Symbol.asyncDispose]()
  for (const folder of folders.splice(0)) rmSync(folder, { recursive: true, force: true })
})

function newPath(): string {
  const folder = mkdtempSync(join(tmpdir(), 'thv-registry-'))
  folders.push(folder)
  return join(folder, 'registry.sqlite')
}

async function open(options: Partial<DatabaseOptions> = {}): Promise<RegistryStore> {
  const store = await openSqliteStore({ clock: systemClock, lockWaitMs: 0, ...options })
  stores.push(store)
  return store
}

/** Everything in the folder, to see whether anything was written. */
function disk(path: string): Record<string, string> {
  const folder = join(path, '..')
  const files = readdirSync(folder).map((name) => {
    const { mtimeMs, mode } = statSync(join(folder, name))
    return [
      name,
      `${mtimeMs} ${mode} ${createHash('sha256')
        .update(readFileSync(join(folder, name)))
        .digest('hex')}`,
    ]
  })
  return Object.fromEntries(files)
}

async function failure(work: Promise<unknown>): Promise<{ code: string | undefined; message: string }> {
  const error = await work.then(
    () => undefined,
    (e: unknown) => e,
  )
  return { code: isThvError(error) ? error.code : undefined, message: errorMessage(error) }
}

describe('the file of the embedded store', () => {
  it('is for its owner alone, also if it was not before', async () => {
    const path = join(newPath(), '..', 'made', 'on the way', 'registry.sqlite')
    const store = await open({ path })
    await store.putSource(file('a'))
    const folder = join(path, '..')
    expect(readdirSync(folder).length).toBeGreaterThan(1)
    for (const name of readdirSync(folder)) expect([name, statSync(join(folder, name)).mode & 0o777]).toEqual([name, 0o600])
    await store[Symbol.asyncDispose]()
    chmodSync(path, 0o644)
    await (await open({ path })).putSource(file('b'))
    for (const name of readdirSync(folder)) expect([name, statSync(join(folder, name)).mode & 0o777]).toEqual([name, 0o600])
  })

  it('is alone when it is closed, and can be closed twice', async () => {
    const path = newPath()
    const store = await open({ path })
    await store.putSource(file('a'))
    const { lease: held } = await lease(store, 'a')
    await store[Symbol.asyncDispose]()
    await store[Symbol.asyncDispose]()
    expect(readdirSync(join(path, '..'))).toEqual(['registry.sqlite'])
    expect(await failure(store.putSource(file('b')))).toMatchObject({ code: 'store_unavailable' })
    expect(await failure(store.ping(never))).toMatchObject({ code: 'store_unavailable' })
    expect(await failure(rowsAfter(store))).toMatchObject({ code: 'store_unavailable' })
    expect(await failure(store.finishSync(held, unchanged()))).toMatchObject({ code: 'store_unavailable' })
  })

  it('belongs to one store; another waits for it a little while', async () => {
    const path = newPath()
    const first = await open({ path })
    const refusal = await failure(open({ path }))
    expect(refusal.code).toBe('conflict')
    expect(refusal.message).toContain(path)
    expect(refusal.message).toContain('PostgreSQL')
    const refused = Promise.withResolvers<void>()
    const clock: Clock = {
      ...systemClock,
      sleep: (ms) => {
        refused.resolve()
        return systemClock.sleep(ms)
      },
    }
    const waiting = open({ path, lockWaitMs: 10_000, clock })
    await refused.promise
    await first.putSource(file('a'))
    await first[Symbol.asyncDispose]()
    expect((await (await waiting).sources()).length).toBe(1)
  })

  it('of a newer release is refused and left as it is', async () => {
    const path = newPath()
    await (await open({ path }))[Symbol.asyncDispose]()
    setNumber(path, `PRAGMA user_version = ${SCHEMA_VERSION + 1}`)
    const before = disk(path)
    const refusal = await failure(open({ path }))
    expect(refusal.code).toBe('store_schema')
    expect(refusal.message).toContain(path)
    expect(refusal.message).toContain(`schema ${SCHEMA_VERSION + 1}`)
    expect(disk(path)).toEqual(before)
  })

  it('of another program is refused and left as it is', async () => {
    const path = newPath()
    setNumber(path, 'CREATE TABLE theirs (id INTEGER)')
    chmodSync(path, 0o640)
    const before = disk(path)
    expect(await failure(open({ path }))).toMatchObject({ code: 'store_schema', message: expect.stringContaining(path) })
    expect(disk(path)).toEqual(before)
  })

  it('that is no database is refused and left as it is', async () => {
    const path = newPath()
    writeFileSync(path, 'sources:\n  - name: this is a configuration\n'.repeat(100))
    const before = disk(path)
    expect(await failure(open({ path }))).toMatchObject({
      code: 'store_unavailable',
      message: expect.stringContaining(`${path} is not a database`),
    })
    expect(disk(path)).toEqual(before)
  })

  it('that is damaged gives an error that names it, and is left as it is', async () => {
    const path = newPath()
    const store = await open({ path })
    await store.putSource(file('a'))
    await sync(store, 'a', changed(Array.from({ length: 500 }, (_, n) => entry('io.x/a', `${n}`))))
    await store[Symbol.asyncDispose]()
    const bytes = readFileSync(path)
    writeFileSync(path, bytes.fill(0xa5, 100))
    const before = disk(path)
    expect(await failure(open({ path }))).toMatchObject({
      code: 'store_unavailable',
      message: expect.stringContaining(`${path} is damaged`),
    })
    expect(disk(path)).toEqual(before)
    writeFileSync(path, bytes.subarray(0, 5_000))
    expect(await failure(open({ path }))).toMatchObject({ code: 'store_unavailable', message: expect.stringContaining(path) })
  })

  it('that cannot be made gives an error that names it', async () => {
    const path = newPath()
    writeFileSync(path, '')
    const below = join(path, 'registry.sqlite')
    expect(await failure(open({ path: below }))).toMatchObject({ code: 'store_unavailable', message: expect.stringContaining(below) })
  })

  it('that is full takes no more; what was there can be read, and the next attempt can fail', async () => {
    const path = newPath()
    const store = await open({ path, maxBytes: 400_000 })
    await store.putSource(file('a'))
    await store.putSource(managed('own'))
    await sync(store, 'a', changed(Array.from({ length: 100 }, (_, n) => entry('io.x/a', `${n}`))))
    const before = await contents(store)
    const { lease: held } = await lease(store, 'a')
    const text = JSON.stringify({ long: 'x'.repeat(2_000) })
    const many = changed(Array.from({ length: 1_000 }, (_, n) => entry('io.x/a', `${n}`, { text })))
    expect(await failure(store.finishSync(held, many))).toMatchObject({ code: 'store_unavailable', message: expect.stringContaining(path) })
    expect((await contents(store)).rows).toEqual(before.rows)
    expect(await store.revision()).toEqual(before.revision)
    await store.ping(never)
    await store.finishSync(held, { kind: 'failed', nextInMs: 60_000, message: 'no room' })
    expect((await sourceOf(store, 'a')).sync).toMatchObject({ phase: 'failed', attemptCount: 1, message: 'no room', serverCount: 100 })
    expect(
      await failure(store.publish({ source: 'own', name: 'io.x/b', version: '1', text: JSON.stringify('x'.repeat(500_000)) })),
    ).toMatchObject({
      code: 'store_unavailable',
    })
    expect((await sourceOf(store, 'own')).sync.serverCount).toBe(0)
    const row = await store.publish({ source: 'own', name: 'io.x/b', version: '1', text: '{}' })
    expect(row.revision).toBe(before.revision.data + 1)
  })

  it('is not written by syncs that find nothing new; how they went is written when it is closed', async () => {
    const path = newPath()
    const store = await open({ path })
    await store.putSource(file('a'))
    await sync(store, 'a', changed([entry('io.x/a')], { state: { etag: '"1"' } }))
    const before = disk(path)
    expect(Object.keys(before)).toContain('registry.sqlite-wal')
    for (let n = 0; n < 5; n++) {
      const { lease: held } = await lease(store, 'a')
      await store.renewLease(held, 60_000)
      await store.finishSync(held, unchanged(60_000, { etag: '"2"' }))
    }
    await sync(store, 'a', { kind: 'failed', nextInMs: 60_000, message: 'no network' })
    await store.reconcileConfig({ sources: [], registries: [] })
    await store.putSource(file('a'))
    expect(disk(path)).toEqual(before)
    const status = (await sourceOf(store, 'a')).sync
    await store[Symbol.asyncDispose]()
    const again = await open({ path })
    expect((await sourceOf(again, 'a')).sync).toEqual(status)
    expect((await lease(again, 'a')).state).toEqual({ etag: '"2"' })
  })

  it('gets how syncs went together with the next write', async () => {
    const path = newPath()
    const store = await open({ path })
    await store.putSource(file('a'))
    await sync(store, 'a', { kind: 'failed', nextInMs: 60_000, message: 'no network' })
    await store.putSource(file('b'))
    expect(existsSync(`${path}-wal`) && readFileSync(`${path}-wal`).includes('no network')).toBe(true)
  })

  it('makes every source due when it is opened', async () => {
    const path = newPath()
    const store = await open({ path })
    await store.putSource(file('a'))
    await sync(store, 'a', unchanged(3_600_000))
    expect(await store.claimDue({ owner: 'one', leaseMs: 1_000, limit: 1 })).toEqual([])
    await store[Symbol.asyncDispose]()
    expect((await (await open({ path })).claimDue({ owner: 'one', leaseMs: 1_000, limit: 1 })).length).toBe(1)
  })
})

describe('a clock that jumps', () => {
  it('back does not take times back, also when the store is opened again', async () => {
    const path = newPath()
    const clock = new TestClock(Date.UTC(2026, 5, 1))
    const store = await open({ path, clock })
    await store.putSource(managed('own'))
    const publish = (to: RegistryStore, version: string) => to.publish({ source: 'own', name: 'io.x/a', version, text: '{}' })
    const times = [(await publish(store, '1')).updatedAt]
    clock.jump(-86_400_000)
    times.push((await publish(store, '2')).updatedAt, (await publish(store, '3')).updatedAt)
    times.push((await only(store.setStatus({ source: 'own', name: 'io.x/a', version: '1', status: 'deleted' }))).updatedAt)
    await store[Symbol.asyncDispose]()
    const again = await open({ path, clock })
    times.push((await publish(again, '4')).updatedAt)
    clock.jump(2 * 86_400_000)
    times.push((await publish(again, '5')).updatedAt)
    expect(times).toEqual(times.toSorted())
    expect(new Set(times).size).toBe(times.length)
    expect(times.at(-1)).toBe(new Date(clock.now()).toISOString())
  })

  it('changes nothing about leases and due times', async () => {
    const clock = new TestClock()
    const store = await open({ clock })
    await store.putSource(file('a'))
    const claim = () => store.claimDue({ owner: 'one', leaseMs: 30_000, limit: 1 })
    const [held] = await claim()
    clock.jump(86_400_000)
    expect(await claim()).toEqual([])
    expect((await sourceOf(store, 'a')).sync.phase).toBe('syncing')
    await clock.advance(29_999)
    expect(await store.nextDueInMs()).toBe(1)
    expect(await claim()).toEqual([])
    await clock.advance(1)
    const [second] = await claim()
    expect(second?.lease.token).not.toBe(held?.lease.token)
    if (second) await store.finishSync(second.lease, unchanged(60_000))
    clock.jump(-2 * 86_400_000)
    expect(await store.nextDueInMs()).toBe(60_000)
    await clock.advance(60_000)
    expect((await claim()).length).toBe(1)
  })
})

function setNumber(path: string, sql: string): void {
  const database = new DatabaseSync(path)
  database.exec(sql)
  database.close()
}
