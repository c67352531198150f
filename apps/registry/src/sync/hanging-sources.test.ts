import type { ServerResponse } from 'node:http'
import { DEFAULT_FETCH_LIMITS } from '@thv/catalog/sources/fetch/registry-handler'
import type { SourceConfig } from '@thv/catalog/sources/fetch/source-config'
import { createHandlers } from '@thv/catalog/sources/handlers'
import { createOutbound } from '@thv/http/outbound/outbound'
import { startBackend } from '@thv/http/testing/backend'
import { systemClock } from '@thv/kernel/clock'
import { describe, expect, it } from 'vitest'
import { silentLog, testConfig } from '../engine/testing/engine-fixture.ts'
import type { RegistryStore } from '../store/registry-store.ts'
import { openSqliteStore } from '../store/sqlite/sqlite-store.ts'
import { until } from '../testing/until.ts'
import { startSyncLoop } from './sync-loop.ts'

const HANGING = 5
/** For a machine that is very busy. */
const LIMIT_MS = 70_000

describe('sources that hang', () => {
  it.each([
    ['say nothing', 'silent'],
    ['trickle', 'trickle'],
  ])(
    'keep no other from being synced though they are more than may sync at the same time: those that %s',
    async (_, manner) => {
      await using backend = await startBackend((request, response) => {
        if (request.url === '/good') return void response.writeHead(200, { etag: '"1"' }).end(GOOD)
        if (request.url.startsWith('/trickle')) trickle(response, request.url.includes('git') ? GIT : 'application/json')
      })
      await using store = await openSqliteStore({ clock: systemClock })
      const kinds: Pick<SourceConfig, 'file' | 'api' | 'git'>[] = [
        { file: { url: `${backend.url}/${manner}`, timeout: '10m' } },
        { api: { endpoint: `${backend.url}/${manner}`, timeout: '5m' } },
        { git: { repository: `${backend.url}/${manner}` } },
      ]
      // They come first, by their names and by when they are due.
      const hanging = Array.from({ length: HANGING }, (_, n) => ({ name: `a${n}`, intervalMs: 3_600_000, ...kinds[n % kinds.length] }))
      await store.reconcileConfig({ sources: hanging, registries: [] })
      await using outbound = createOutbound()
      await using loop = startSyncLoop({
        store,
        handlers: createHandlers({ outbound }),
        clock: systemClock,
        log: silentLog,
        config: () => ({ ...testConfig({ sources: [], registries: [] }).sync, parallel: 2, allowPrivateAddresses: true }),
        owner: 'me',
        limits: () => DEFAULT_FETCH_LIMITS,
        tempDir: '/tmp',
        random: Math.random,
        pause: async () => undefined,
      })
      const good: SourceConfig = { name: 'good', file: { url: `${backend.url}/good` }, intervalMs: 1_000 }
      await store.reconcileConfig({ sources: [...hanging, good], registries: [] })
      await until(async () => (await phases(store))['good'] === 'complete')
      expect((await store.versionsOf('good', 'io.example/good')).length).toBe(1)
      // Also the next time, when all the others hang at once.
      await until(() => loop.counts.unchanged > 0)
      const files = hanging.filter(({ file }) => file).map(({ name }) => [name, 'syncing'])
      expect(await phases(store)).toMatchObject(Object.fromEntries(files))
    },
    LIMIT_MS,
  )
})

const GOOD = JSON.stringify([{ name: 'io.example/good', description: 'A server', version: '1.0.0' }])

const GIT = 'application/x-git-upload-pack-advertisement'

function trickle(response: ServerResponse, type: string): void {
  response.writeHead(200, { 'content-type': type })
  const timer = setInterval(() => response.write('0'), 100)
  response.on('close', () => clearInterval(timer))
}

async function phases(store: RegistryStore): Promise<Record<string, string>> {
  return Object.fromEntries((await store.sources()).map(({ config, sync }) => [config.name, sync.phase]))
}
