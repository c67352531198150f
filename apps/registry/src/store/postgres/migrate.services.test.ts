import { describePostgres, testPostgres } from '@thv/testkit/postgres/describe-postgres'
import type { TestDatabase } from '@thv/testkit/postgres/test-database'
import { beforeEach, expect, onTestFinished, test } from 'vitest'
import { until } from '../../testing/until.ts'
import { changed, entry, rowsAfter, sync } from '../testing/contract/contract-tools.ts'
import { demandCurrent, type MigrateOptions, migrateDown, migrateUp, schemaState } from './migrate.ts'
import { type Migration, migrations } from './migrations.ts'
import { openPostgresStore } from './postgres-store.ts'
import { SERVER_ROLE } from './server-role.ts'
import { configOf, quiet } from './testing/test-config.ts'

describePostgres('migrations', () => {
  let database: TestDatabase
  beforeEach(async () => {
    database = await testPostgres().createDatabase()
  })
  const latest = migrations.length
  const up = (options: MigrateOptions = {}) => migrateUp(configOf(database), { log: quiet, ...options })
  const down = (steps: number) => migrateDown(configOf(database), steps, { log: quiet })
  const tables = async () => (await database.sql("SELECT tablename FROM pg_tables WHERE schemaname = 'public' ORDER BY 1")).split('\n')
  const open = async (more: Parameters<typeof openPostgresStore>[1] = {}) => {
    const store = await openPostgresStore(configOf(database), { log: quiet, ...more })
    onTestFinished(() => store[Symbol.asyncDispose]())
    return store
  }

  test('go up, say so, and down again', async () => {
    expect(await schemaState(configOf(database), { log: quiet })).toEqual({ version: 0, dirty: false, latest })
    expect(await up()).toEqual({ from: 0, to: latest })
    expect(await up()).toEqual({ from: latest, to: latest })
    expect(await tables()).toEqual(['entry', 'registry', 'revision', 'schema_migrations', 'source', 'stamp'])
    expect(await down(1000)).toEqual({ from: latest, to: 0 })
    expect(await tables()).toEqual(['schema_migrations'])
    expect(await down(1)).toEqual({ from: 0, to: 0 })
    const two = [...migrations, { version: latest + 1, name: 'more', up: 'CREATE TABLE more (n int)', down: 'DROP TABLE more' }]
    expect(await up({ migrations: two, steps: latest })).toEqual({ from: 0, to: latest })
    expect(await tables()).not.toContain('more')
    expect(() => down(0)).toThrow('1 or more')
  })

  test('are done by one of many that start at once on an empty database', async () => {
    const stores = await Promise.all(Array.from({ length: 6 }, () => open()))
    const config = { sources: [{ name: 'own', managed: {} }], registries: [{ name: 'r', sources: ['own'] }] }
    await Promise.all(stores.map((store) => store.reconcileConfig(config)))
    for (const store of stores) expect(await store.revision()).toEqual({ data: 0, structure: 1 })
  })

  test('keep what an older version has written, up and down', async () => {
    await up({ steps: 1 })
    const times = (second: number) => Array.from({ length: 3 }, (_, n) => `'2026-01-0${n + 1}T00:00:0${second}.000Z'`).join(', ')
    await database.sql(`
      INSERT INTO source (name, type, config, creation, created_at, updated_at, phase, due_at)
        VALUES ('a', 'file', '{"name":"a","file":{"path":"/x"},"intervalMs":60000}', 'API', '', '', 'pending', now());
      INSERT INTO entry (source_id, name, version, document, hash, status, published_at, updated_at, status_changed_at, revision)
        SELECT id, 'x/a', '1', '{}', 'h1', 'active', ${times(1)}, 3 FROM source
        UNION ALL SELECT id, 'x/a', '2', '{}', 'h2', 'active', ${times(2)}, 2 FROM source;
      UPDATE revision SET data = 3, stamped_at = '2026-01-02T00:00:01Z'`)
    const expected = [
      { version: '2', revision: 2, publishedAt: '2026-01-01T00:00:02.000Z', updatedAt: '2026-01-02T00:00:02.000Z' },
      { version: '1', revision: 3, publishedAt: '2026-01-01T00:00:01.000Z', statusChangedAt: '2026-01-03T00:00:01.000Z' },
    ]
    await up()
    const store = await open()
    expect(await rowsAfter(store)).toMatchObject(expected)
    await sync(store, 'a', changed([entry('x/a', '2', { text: '{"n":1}' }), entry('x/b', '1')]))
    const rows = await rowsAfter(store)
    expect(rows).toMatchObject([
      expected[1],
      { name: 'x/a', version: '2', revision: 4, publishedAt: expected[0]?.publishedAt },
      { name: 'x/b' },
    ])
    await store[Symbol.asyncDispose]()
    expect(await down(1)).toEqual({ from: latest, to: latest - 1 })
    const kept = await database.sql('SELECT name, version, revision, updated_at = published_at FROM entry ORDER BY revision, name')
    expect(kept).toBe('x/a|1|3|f\nx/a|2|4|f\nx/b|1|4|t')
    await up()
    expect(await rowsAfter(await open())).toEqual(rows)
  })

  const broken = (more: Partial<Migration> = {}): Migration[] => [
    ...migrations,
    { version: latest + 1, name: 'broken', up: 'CREATE TABLE half (n int); SELECT 1 / 0', down: 'DROP TABLE half', ...more },
  ]

  test('leave nothing of a step that fails', async () => {
    await expect(up({ migrations: broken() })).rejects.toMatchObject({
      code: 'store_schema',
      message: expect.stringMatching(/\(broken\) up failed, nothing of it was done/),
    })
    expect(await tables()).not.toContain('half')
    expect(await schemaState(configOf(database), { log: quiet })).toEqual({ version: latest, dirty: false, latest })
    const repaired = broken({ up: 'CREATE TABLE half (n int)' })
    expect(await up({ migrations: repaired, steps: 1 })).toEqual({ from: latest, to: latest + 1 })
    expect(await up({ migrations: repaired, steps: 5 })).toEqual({ from: latest + 1, to: latest + 1 })
  })

  test('mark a step that cannot be taken back, and then wait for a person', async () => {
    await up()
    // Each statement by itself: the table stays.
    const steps = broken({ outsideTransaction: true, up: 'DO $$ BEGIN CREATE TABLE half (n int); COMMIT; PERFORM 1 / 0; END $$' })
    await expect(up({ migrations: steps })).rejects.toMatchObject({ message: expect.stringContaining('marked as dirty') })
    expect(await tables()).toContain('half')
    for (const act of [() => up({ migrations: steps }), () => up(), () => down(1), () => open()]) {
      await expect(act()).rejects.toMatchObject({ code: 'store_schema', message: expect.stringMatching(/failed half-way.*dirty to false/) })
    }
    await database.sql(`DROP TABLE half; UPDATE schema_migrations SET version = ${latest}, dirty = false`)
    await open()
  })

  test('of a newer program are left alone', async () => {
    await up()
    await database.sql('UPDATE schema_migrations SET version = 99')
    for (const act of [() => up(), () => down(1), () => open(), () => open({ migrate: false })]) {
      await expect(act()).rejects.toMatchObject({ code: 'store_schema', message: expect.stringMatching(/version 99.*newer program/) })
    }
  })

  test('are asked for when the store must not do them itself', async () => {
    await expect(open({ migrate: false })).rejects.toMatchObject({ code: 'store_schema', message: expect.stringContaining('migrate up') })
    expect(() => demandCurrent({ version: 0, dirty: false, latest })).toThrow('migrate up')
    await up()
    await open({ migrate: false })
  })

  test('wait for a lock, up to a limit', async () => {
    await up()
    const never = broken({ up: 'SELECT pg_sleep(30)' })
    const slow = up({ migrations: never }).catch((error: unknown) => error)
    const running = async () => (await database.sql("SELECT count(*) FROM pg_stat_activity WHERE query LIKE '%pg_sleep(30)%'")) === '2'
    await until(running)
    await expect(up({ lockLimitMs: 200 })).rejects.toMatchObject({
      code: 'store_unavailable',
      message: expect.stringContaining('migrating'),
    })
    await database.sql(
      'SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid()',
    )
    expect(await slow).toMatchObject({ code: 'store_unavailable' })
    expect(await up()).toEqual({ from: latest, to: latest })
  })

  test('are the business of a user of their own; the server has rights on rows only', async () => {
    const app = await testPostgres().createUser()
    const config = configOf({ ...database, ...app }, { migrationUser: database.user, migrationPassword: database.password })
    await database.sql(`DO $$ BEGIN CREATE ROLE ${SERVER_ROLE}; EXCEPTION WHEN duplicate_object OR unique_violation THEN NULL; END $$`)
    await expect(openPostgresStore(configOf({ ...database, ...app }), { log: quiet })).rejects.toMatchObject({ code: 'store_unavailable' })
    // A user without the right to grant the role gets an error, and the store names the missing right.
    await expect(openPostgresStore(config, { log: quiet })).rejects.toMatchObject({
      message: expect.stringContaining(`member of ${SERVER_ROLE}`),
    })
    await database.sql(`GRANT ${SERVER_ROLE} TO ${database.user} WITH ADMIN OPTION`)
    await migrateUp(config, { log: quiet })
    await using store = await openPostgresStore(config, { log: quiet })
    await store.putSource({ name: 'own', managed: {} })
    await store.publish({ source: 'own', name: 'io.x/a', version: '1', text: '{}' })
    const rights = await database.sql(
      `SELECT has_table_privilege('${app.user}', 'entry', 'DELETE'), has_table_privilege('${app.user}', 'entry', 'TRUNCATE'), has_schema_privilege('${app.user}', 'public', 'CREATE')`,
    )
    expect(rights).toBe('t|f|f')
    // Tables of later migrations too.
    await migrateUp(config, { log: quiet, migrations: broken({ up: 'CREATE TABLE later (n int)' }) })
    expect(await database.sql(`SELECT has_table_privilege('${app.user}', 'later', 'INSERT')`)).toBe('t')
  })
})
