import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { isThvError } from '@thv/kernel/errors'
import { createLogger } from '@thv/telemetry/log'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import type { RegistryConfig } from '../config/registry-config.ts'
import { until } from '../testing/until.ts'
import { listed } from '../views/testing/view-tools.ts'
import { type EngineWorker, startEngineWorker } from './engine-worker.ts'
import { silentLog, testConfig } from './testing/engine-fixture.ts'

const entry = new URL('./testing/worker-entry.ts', import.meta.url)

describe('the engine in a thread of its own', () => {
  let folder: string
  let engine: EngineWorker
  let config: RegistryConfig
  const released: string[] = []
  /** A new thread loads all its modules again: on a busy machine that takes as long as it takes, and the limit is that of the test. */
  const back = Promise.withResolvers<void>()
  const log = createLogger({ level: 'info', format: 'json', write: (line) => line.includes('the engine runs again') && back.resolve() })

  beforeAll(async () => {
    folder = await mkdtemp(join(tmpdir(), 'engine-worker-'))
    const path = join(folder, 'servers.json')
    const servers = Array.from({ length: 600 }, (_, i) => ({ name: `x.y/s${i}`, description: 'A server', version: '1.0.0' }))
    const meta = { last_updated: '2026-01-01T00:00:00Z' }
    await writeFile(path, JSON.stringify({ version: '1.0.0', meta, data: { servers } }))
    config = {
      ...testConfig({
        sources: [
          { name: 'files', file: { path }, intervalMs: 3_600_000 },
          { name: 'own', managed: {} },
        ],
        registries: [{ name: 'main', sources: ['own', 'files'] }],
      }),
      storage: { kind: 'sqlite', path: join(folder, 'registry.db') },
    }
    engine = await startEngineWorker({ config, entry, log, onReleased: (result) => released.push(result) })
    await until(() => engine.registry('main')?.view?.snapshot.count === 600)
  })

  afterAll(async () => {
    await engine[Symbol.asyncDispose]()
    await rm(folder, { recursive: true, force: true })
  })

  it('serves lists first, and then search', async () => {
    await until(() => engine.registry('main')?.view?.searchTag === engine.registry('main')?.view?.tag)
    const view = engine.registry('main')?.view
    expect(view?.search?.search('s17').hits[0]?.name).toBe('x.y/s17')
  })

  it('takes calls as if it were here, with the codes of errors', async () => {
    const document = { source: 'own', name: 'x.y/new', version: '1.0.0', text: '{"name":"x.y/new","description":"d","version":"1.0.0"}' }
    await engine.admin.publish(document)
    expect(Buffer.from(engine.registry('main')?.view?.snapshot.version('x.y/new', 'latest') ?? []).toString()).toContain('x.y/new')
    await expect(engine.admin.publish(document)).rejects.toMatchObject({ name: 'ThvError', code: 'version_exists' })
    expect(await engine.admin.entriesOf('files')).toHaveLength(600)
    expect((await engine.admin.sources()).map(({ config }) => config.name)).toEqual(['files', 'own'])
    expect(JSON.parse((await engine.admin.listedImages()).body)).toEqual({ synced: true, images: expect.any(Array) })
    await expect(engine.reload({ ...config, storage: { kind: 'sqlite' } })).rejects.toMatchObject({ code: 'registry_config_invalid' })
  })

  it('gives the memory of its load back when it is quiet, and says so', async () => {
    await until(() => released.length > 0, 120_000)
    expect(released[0]).toBe('done')
  })

  it('comes back when it dies, and reads go on meanwhile', async () => {
    // The index of what was published comes later, with a view of its own.
    await until(() => engine.registry('main')?.view?.searchTag === engine.registry('main')?.view?.tag)
    const before = engine.registry('main')?.view
    const claims = await engine.registry('main')?.viewFor([])
    expect(claims?.snapshot.count).toBe(0)
    // Under way when it dies, or answered just before; afterwards no call waits either.
    const caught = engine.admin.sources().catch((error: unknown) => error)
    await engine.crash()
    await expect(engine.admin.sources()).rejects.toMatchObject({ code: 'store_unavailable' })
    expect(await caught).toSatisfy((answer) => Array.isArray(answer) || isThvError(answer, 'store_unavailable'))
    expect(engine.registry('main')?.view).toBe(before)
    await until(() => engine.status.storeError !== undefined)
    expect(engine.status.loaded).toBe(true)
    expect(listed(engine.registry('main')?.view?.snapshot ?? missing())).toHaveLength(601)
    await back.promise
    expect(engine.status.storeError).toBeUndefined()
    await until(() => engine.registry('main')?.view !== before)
    expect(engine.registry('main')?.view?.tag).toBe(before?.tag)
    expect(await engine.admin.versionsOf('own', 'x.y/new')).toHaveLength(1)
    // Views for some claims are built again too.
    await until(async () => (await engine.registry('main')?.viewFor([])) !== claims)
  })

  it('says why it cannot start', async () => {
    const conflict = testConfig({ sources: [], registries: [{ name: 'main', sources: ['nowhere'] }] })
    await expect(startEngineWorker({ config: conflict, entry, log: silentLog })).rejects.toMatchObject({ code: 'bad_request' })
  })
})

function missing(): never {
  throw new Error('no view')
}
