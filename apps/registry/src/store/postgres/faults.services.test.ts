import { randomBytes } from 'node:crypto'
import { setTimeout as sleep } from 'node:timers/promises'
import { systemClock } from '@thv/kernel/clock'
import { isThvError } from '@thv/kernel/errors'
import { describePostgres } from '@thv/testkit/postgres/describe-postgres'
import { startPostgres, type TestPostgres } from '@thv/testkit/postgres/postgres'
import type { TestDatabase } from '@thv/testkit/postgres/test-database'
import { beforeAll, expect, test, vi } from 'vitest'
import type { RegistryStore } from '../registry-store.ts'
import { changed, entry, file, lease, managed, rowsAfter } from '../testing/contract/contract-tools.ts'
import { openDatabase } from './database.ts'
import { openPostgresStore, type PostgresStoreOptions } from './postgres-store.ts'
import { lockRevision } from './revision.ts'
import { configOf, quiet } from './testing/test-config.ts'

/** Waits are for what must happen; their limit is far above what it takes. */
const LIMIT = 30_000
const isRoot = process.getuid?.() === 0

describePostgres('faults of PostgreSQL', () => {
  let server: TestPostgres
  beforeAll(async () => {
    server = await startPostgres({ fsync: true, ...(isRoot && { smallDiskMiB: 4 }) })
    return () => server.stop()
  })

  /** A database and a store with the managed source `own`. */
  const openWorld = async (more: PostgresStoreOptions = {}): Promise<World> => {
    const database = await server.createDatabase()
    const open = () => openPostgresStore(configOf(database), { log: quiet, ...more })
    const store = await open()
    await store.putSource(managed('own'))
    return { database, store, open, [Symbol.asyncDispose]: () => store[Symbol.asyncDispose]() }
  }

  test('stamps of writes that nothing is left of are swept, those of others and of the write itself stay', async () => {
    await using world = await openWorld()
    const { database, store } = world
    const stamps = () => database.sql('SELECT revision FROM stamp ORDER BY revision')
    await store.publish({ source: 'own', name: 'io.x/a', version: '1', text: '{}' })
    await store.publish({ source: 'own', name: 'io.x/a', version: '2', text: '{}' })
    await store.setStatus({ source: 'own', name: 'io.x/a', version: '1', status: 'deprecated' })
    expect(await stamps()).toBe('1\n2\n3')
    await database.sql('UPDATE revision SET data = 999')
    await store.publish({ source: 'own', name: 'io.x/a', version: '3', text: '{}' })
    expect(await stamps()).toBe('2\n3\n1000')
    await database.sql('UPDATE revision SET data = 1999')
    await store.putSource(file('big'))
    await store.finishSync((await lease(store, 'big')).lease, changed([entry('io.x/b', '1')]))
    await store.setStatus({ source: 'own', name: 'io.x/a', version: '2', status: 'deprecated' })
    expect(await stamps()).toBe('2\n3\n1000\n2000\n2001')
    await database.sql('UPDATE revision SET data = 2999')
    await store.finishSync((await lease(store, 'big')).lease, changed([entry('io.x/b', '1', { text: '{"new":1}' })]))
    expect(await stamps()).toBe('3\n1000\n2001\n3000')
    expect((await rowsAfter(store)).map(({ version, revision }) => `${version}@${revision}`)).toEqual(['1@3', '3@1000', '2@2001', '1@3000'])
  })

  test('a restart and a crash cost calls, never a write that was confirmed, and the store comes back by itself', async () => {
    await using world = await openWorld()
    const { store } = world
    let told = 0
    store.onChange(() => told++)
    const writing = keepPublishing(store)
    const crash = async () => {
      await server.kill()
      await server.start()
    }
    for (const act of [() => server.restart(), crash]) {
      await writing.someMore()
      await act()
      told = 0
      await vi.waitFor(() => expect(told).toBeGreaterThan(0), LIMIT)
    }
    await writing.someMore()
    const { confirmed, errors } = await writing.stop()
    expect(errors.filter((error) => !isThvError(error, 'store_unavailable'))).toEqual([])
    const there = new Set((await rowsAfter(store)).map((row) => row.version))
    expect(confirmed.filter((version) => !there.has(version))).toEqual([])
    const revisions = (await rowsAfter(store)).map((row) => row.revision)
    expect(revisions).toEqual(revisions.map((_, index) => index + 1))
  })

  test('a listening connection that is cut comes back, and tells what may have been missed', async () => {
    await using world = await openWorld()
    const { database, store } = world
    await using other = await world.open()
    let told = 0
    other.onChange(() => told++)
    for (let n = 0; n < 3; n++) {
      const cut =
        "SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity WHERE datname = current_database() AND query LIKE 'LISTEN%'"
      await vi.waitFor(async () => {
        told = 0 // the notification may come before we know that the connection was cut
        expect(await database.sql(cut)).toBe('2')
      }, LIMIT)
      await vi.waitFor(() => expect(told).toBeGreaterThan(0), LIMIT)
      told = 0
      await store.publish({ source: 'own', name: 'io.x/a', version: `${n}`, text: '{}' })
      await vi.waitFor(() => expect(told).toBeGreaterThan(0), LIMIT)
    }
  })

  test('a server that goes silent costs a bounded time, also for who closes', async () => {
    // The tables are made within the usual limits: a busy server may take as long as a silent one is given here.
    await using world = await openWorld()
    const open = () => openPostgresStore(configOf(world.database), { log: quiet, limits: { connectMs: 1_500, answerMs: 1_500 } })
    await using store = await open()
    const second = await open()
    server.freeze()
    try {
      await expect(store.revision()).rejects.toMatchObject({ code: 'store_unavailable' })
      await expect(store.ping(AbortSignal.timeout(50))).rejects.toMatchObject({ name: 'TimeoutError' })
      await expect(store.publish({ source: 'own', name: 'io.x/a', version: '1', text: '{}' })).rejects.toMatchObject({
        code: 'store_unavailable',
      })
      await second[Symbol.asyncDispose]()
    } finally {
      server.unfreeze()
    }
    await vi.waitFor(() => store.revision(), LIMIT)
    await store.publish({ source: 'own', name: 'io.x/a', version: '2', text: '{}' })
  })

  test('a database that has become read-only is read on, says why, and is written again later', async () => {
    await using world = await openWorld()
    const { database, store } = world
    const readOnly = async (value: 'on' | 'off') => {
      await database.sql(`ALTER SYSTEM SET default_transaction_read_only = ${value}`)
      await database.sql('SELECT pg_reload_conf()')
    }
    const publish = (version: string) => store.publish({ source: 'own', name: 'io.x/a', version, text: '{}' })
    await publish('1')
    await readOnly('on')
    let attempt = 1
    await vi.waitFor(
      () =>
        expect(publish(`${++attempt}`)).rejects.toMatchObject({ code: 'store_unavailable', message: expect.stringContaining('read-only') }),
      LIMIT,
    )
    expect((await rowsAfter(store)).length).toBeGreaterThan(0)
    await readOnly('off')
    await vi.waitFor(() => publish(`${++attempt}`), LIMIT)
  })

  test.skipIf(!isRoot)('a full disk fails the write whole, and no other one', async () => {
    await using world = await openWorld()
    const { database, store } = world
    await database.sql(`CREATE TABLESPACE small LOCATION '${server.smallDisk}'`)
    await database.sql('ALTER TABLE entry SET TABLESPACE small')
    await store.putSource(file('big'))
    await store.publish({ source: 'own', name: 'io.x/a', version: '1', text: '{}' })
    const incompressible = () => JSON.stringify(randomBytes(60_000).toString('base64'))
    const upserts = Array.from({ length: 100 }, (_, n) => entry('io.x/b', `${n}`, { text: incompressible(), hash: `${n}` }))
    const { lease: held } = await lease(store, 'big')
    await expect(store.finishSync(held, changed(upserts))).rejects.toMatchObject({
      code: 'store_unavailable',
      message: expect.stringContaining('full'),
    })
    expect((await rowsAfter(store)).map((row) => row.name)).toEqual(['io.x/a'])
    expect(await store.revision()).toMatchObject({ data: 1 })
    // The lease is as it was: the attempt can be ended, or repeated.
    await server.resizeSmallDisk(64)
    expect(await store.finishSync(held, changed(upserts))).toEqual({ revision: 2, serverCount: 100 })
  })

  test('a long sync delays no publication, and is newer than entries published meanwhile', async () => {
    await using world = await openWorld()
    const { database, store } = world
    await using reader = await world.open()
    await store.putSource(file('big'))
    const old = [entry('io.x/b', '1'), entry('io.x/b', '2'), entry('io.x/b', '3')]
    await store.finishSync((await lease(store, 'big')).lease, changed(old))
    const { lease: held } = await lease(store, 'big')
    const upserts = Array.from({ length: 5_000 }, (_, n) => entry('io.x/b', `${n}`, { text: `{"new":${n}}` }))
    const blocker = await openDatabase(configOf(database), { clock: systemClock, log: quiet })
    const inTheMiddle = Promise.withResolvers<void>()
    const go = Promise.withResolvers<void>()
    const blocking = blocker.transaction(async (sql) => {
      await sql("SELECT FROM entry WHERE name = 'io.x/b' AND version = '2' FOR UPDATE")
      inTheMiddle.resolve()
      await go.promise
    })
    await inTheMiddle.promise
    const syncing = store.finishSync(held, changed(upserts, { gone: [{ name: 'io.x/b', version: 'none' }] }))
    const waiting = "SELECT count(*) FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND datname = current_database()"
    await vi.waitFor(async () => expect(await database.sql(waiting)).toBe('1'), LIMIT)
    const published = await store.publish({ source: 'own', name: 'io.x/a', version: '1', text: '{}' })
    await store.setStatus({ source: 'own', name: 'io.x/a', version: '1', status: 'deprecated' })
    await store.putRegistry({ name: 'r', sources: ['big'] })
    await store.requestSync('big')
    expect(await store.renewLease(held, 60_000)).toBe(true)
    const seen = await rowsAfter(reader)
    const after = (await reader.revision()).data
    expect(seen.map(({ name, version }) => `${name} ${version}`)).toEqual(['io.x/b 1', 'io.x/b 2', 'io.x/b 3', 'io.x/a 1'])
    // Nothing of it is done: what is in the middle is still there.
    expect(await database.sql(waiting)).toBe('1')
    go.resolve()
    await blocking
    expect(await syncing).toEqual({ revision: after + 1, serverCount: 5_000 })
    const later = await rowsAfter(reader, after)
    expect(later.length).toBe(5_000)
    expect(later.every((row) => row.revision === after + 1 && row.updatedAt > published.updatedAt)).toBe(true)
    await blocker.close()
  })

  test('a sync whose source is changed or deleted while it writes leaves nothing behind', async () => {
    await using world = await openWorld()
    const { database, store } = world
    const others: ((name: string) => Promise<unknown>)[] = [(name) => store.putSource(file(name, { intervalMs: 5_000 }))]
    for (const [n, change] of others.entries()) {
      const name = `big${n}`
      await store.putSource(file(name))
      await store.finishSync((await lease(store, name)).lease, changed([entry('io.x/b', '1')]))
      const { lease: held } = await lease(store, name)
      const { data } = await store.revision()
      const blocker = await openDatabase(configOf(database), { clock: systemClock, log: quiet })
      let syncing: Promise<unknown> | undefined
      await blocker.transaction(async (sql) => {
        await sql("SELECT FROM entry WHERE name = 'io.x/b' FOR UPDATE")
        syncing = store.finishSync(held, changed([entry('io.x/b', '1', { text: '{}' }), entry('io.x/b', '2')])).catch((e) => e)
        await vi.waitFor(
          async () => expect(await database.sql("SELECT count(*) FROM pg_stat_activity WHERE wait_event_type = 'Lock'")).not.toBe('0'),
          LIMIT,
        )
        await change(name)
      })
      expect(await syncing).toMatchObject({ code: 'lease_lost' })
      expect((await store.revision()).data).toBe(data)
      expect(await store.versionsOf(name, 'io.x/b')).toHaveLength(1)
      await blocker.close()
    }
    await store.putSource(file('gone'))
    const { lease: held } = await lease(store, 'gone')
    const rows = Array.from({ length: 20_000 }, (_, n) => entry('io.x/g', `${n}`))
    const both = await Promise.allSettled([store.finishSync(held, changed(rows)), store.deleteSource('gone')])
    expect(both[1]).toMatchObject({ status: 'fulfilled' })
    expect(await rowsAfter(store)).not.toContainEqual(expect.objectContaining({ source: 'gone' }))
    expect(await database.sql("SELECT count(*) FROM entry WHERE name = 'io.x/g'")).toBe('0')
  })

  test('a clock that has gone back keeps neither a source nor a lease for itself', async () => {
    await using world = await openWorld()
    const { database, store } = world
    await store.putSource(file('a'))
    const { lease: done } = await lease(store, 'a')
    await store.finishSync(done, changed([entry('io.x/a', '1')]))
    const claim = () => store.claimDue({ owner: 'me', leaseMs: 5000, limit: 10 })
    expect(await claim()).toEqual([])
    // As if everything had been written by a clock that was a day ahead.
    const later = "interval '1 day'"
    await database.sql(
      `UPDATE source SET due_at = due_at + ${later}, last_attempt = to_char(last_attempt::timestamp + ${later}, 'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"')`,
    )
    expect((await claim()).map(({ config }) => config.name)).toEqual(['a'])
    expect(await claim()).toEqual([])
    await database.sql(`UPDATE source SET lease_until = lease_until + ${later}`)
    expect((await claim()).map(({ config }) => config.name)).toEqual(['a'])
  })

  test('a process that stands still in a transaction does not keep the others waiting for long', async () => {
    await using world = await openWorld()
    const { database, store } = world
    const stalled = await openDatabase(configOf(database), { clock: systemClock, log: quiet, limits: { pauseMs: 200 } })
    let locked = false
    const hold = () =>
      stalled.transaction(async (sql) => {
        await lockRevision(sql)
        locked = true
        await store.publish({ source: 'own', name: 'io.x/a', version: '1', text: '{}' })
        await sql('DELETE FROM entry')
      })
    // On a busy machine it may stand still before it has the lock.
    for (let n = 0; n < 20 && !locked; n++) await expect(hold()).rejects.toMatchObject({ code: 'store_unavailable' })
    expect((await rowsAfter(store)).length).toBe(1)
    await stalled.close()
  })
})

interface World extends AsyncDisposable {
  readonly database: TestDatabase
  readonly store: RegistryStore
  open(): Promise<RegistryStore>
}

/** One version after the other, whatever fails. */
function keepPublishing(store: RegistryStore) {
  const confirmed: string[] = []
  const errors: unknown[] = []
  let stopped = false
  const running = (async () => {
    for (let n = 0; !stopped; n++) {
      try {
        await store.publish({ source: 'own', name: 'io.x/a', version: `${n}`, text: '{}' })
        confirmed.push(`${n}`)
      } catch (error) {
        errors.push(error)
        await sleep(5)
      }
    }
  })()
  return {
    someMore: async () => {
      const goal = confirmed.length + 20
      await vi.waitFor(() => expect(confirmed.length).toBeGreaterThan(goal), LIMIT)
    },
    stop: async () => {
      stopped = true
      await running
      return { confirmed, errors }
    },
  }
}
