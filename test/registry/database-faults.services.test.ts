import { randomBytes } from 'node:crypto'
import { startBackend } from '@thv/http/testing/backend'
import { describePostgres } from '@thv/testkit/postgres/describe-postgres'
import { startPostgres, type TestPostgres } from '@thv/testkit/postgres/postgres'
import { beforeAll, expect, test } from 'vitest'
import { databaseOf, documentOf, eventually, registryFile, registryWorld, type Server, type ServerDocument } from './registry-world.ts'
import { startTraffic } from './traffic.ts'

const isRoot = process.getuid?.() === 0

const paths = [
  '/registry/few/v0.1/servers',
  '/registry/all/v0.1/servers/io.example%2Fheld/versions/1.0.0',
  '/registry/all/v0.1/x/dev.toolhive/search?q=held',
]

describePostgres('a PostgreSQL that is in trouble', () => {
  let database: TestPostgres
  beforeAll(async () => {
    database = await startPostgres({ ...(isRoot && { smallDiskMiB: 4 }) })
    return () => database.stop()
  })

  test('is restarted, crashes and goes silent: reads go on, writes are asked to come back, readiness tells, and all of it mends itself', async () => {
    await using origin = await changingOrigin()
    const server = await startServer(origin.url)
    const traffic = startTraffic(server.url, paths)
    const acknowledged: ServerDocument[] = []
    const faults: { name: string; begin: () => unknown; end: () => unknown }[] = [
      { name: 'halted', begin: () => database.halt(), end: () => database.start() },
      { name: 'killed', begin: () => database.kill(), end: () => database.start() },
      { name: 'frozen', begin: () => database.freeze(), end: () => database.unfreeze() },
    ]
    for (const { name, begin, end } of faults) {
      acknowledged.push(await published(server, `io.example/before-${name}`))
      await begin()
      try {
        const answer = await eventually('readiness tells', async () => {
          const readiness = await fetch(`${server.internalUrl}/readiness`)
          const json = (await readiness.json()) as { store?: string }
          return json.store === 'unavailable' && { status: readiness.status, json }
        })
        expect(answer, 'ready for reads').toEqual({ status: 200, json: { status: 'ready', store: 'unavailable' } })
        expect((await fetch(`${server.internalUrl}/health`)).status).toBe(200)
        const refused = await server.publish(documentOf(`io.example/during-${name}`))
        expect([refused.status, refused.json.code]).toEqual([503, 'unavailable'])
        expect(Number(refused.headers.get('retry-after'))).toBeGreaterThanOrEqual(1)
        expect(refused.text).not.toContain('127.0.0.1')
        await traffic.more(50)
      } finally {
        await end()
      }
      await eventually('the store answers again', async () => {
        const { store } = (await (await fetch(`${server.internalUrl}/readiness`)).json()) as { store?: string }
        return store === 'available'
      })
      // The source changes with every fetch. What one of them found may be lost, or be gone again with the next one.
      const before = origin.fetches
      await eventually('sources are fetched again', () => origin.fetches > before)
      await eventually('what was fetched is served', async () => (await servedFetch(server)) > before)
      acknowledged.push(await published(server, `io.example/after-${name}`))
    }
    for (const document of acknowledged) expect([document.name, await isThere(server, document)]).toEqual([document.name, true])
    expect(await traffic.stop()).toEqual([])
    expect(await server.stop()).toBe(0)
  })

  test.skipIf(!isRoot)('is full: reads go on, what does not fit is refused whole, and there is room again later', async () => {
    await using origin = await changingOrigin()
    const server = await startServer(origin.url)
    await server.sql(`CREATE TABLESPACE small LOCATION '${database.smallDisk}'`)
    await server.sql('ALTER TABLE entry SET TABLESPACE small')
    const traffic = startTraffic(server.url, paths)
    const acknowledged: ServerDocument[] = []
    const large = (n: number) => documentOf(`io.example/large-${n}`, '1.0.0', { 'x-noise': randomBytes(150_000).toString('base64') })
    let refused: ServerDocument | undefined
    for (let n = 0; refused === undefined; n++) {
      expect(n).toBeLessThan(60)
      const document = large(n)
      const answer = await server.publish(document)
      if (answer.status === 200) acknowledged.push(document)
      else {
        expect([answer.status, answer.headers.has('retry-after')]).toEqual([503, true])
        refused = document
      }
    }
    expect(acknowledged.length).toBeGreaterThan(3)
    expect(await isThere(server, refused)).toBe(false)
    await server.ready()
    await database.resizeSmallDisk(64)
    const document = refused
    await eventually('there is room', async () => (await server.publish(document)).status === 200)
    for (const kept of [...acknowledged, document]) expect([kept.name, await isThere(server, kept)]).toEqual([kept.name, true])
    expect(await traffic.stop()).toEqual([])
    expect(await server.stop()).toBe(0)
  })

  async function startServer(origin: string): Promise<Server & { sql(text: string): Promise<string> }> {
    const world = registryWorld()
    const own = await database.createDatabase()
    const config = world.config({
      sources: [
        { name: 'own', managed: {} },
        { name: 'origin', file: { url: `${origin}/registry.json` }, syncPolicy: { interval: '1s' } },
      ],
      registries: [
        { name: 'all', sources: ['own', 'origin'] },
        { name: 'few', sources: ['origin'] },
      ],
      sync: { leaseDuration: '5s', retryInterval: '100ms' },
      database: databaseOf(own),
    })
    const server = await world.serve(config)
    await server.ready()
    await published(server, 'io.example/held')
    return { ...server, sql: own.sql }
  }
})

async function published(server: Server, name: string): Promise<ServerDocument> {
  const document = documentOf(name)
  const answer = await eventually('it is published', async () => {
    const answer = await server.publish(document)
    return answer.status !== 503 && answer
  })
  expect([name, answer.status]).toEqual([name, 200])
  return document
}

async function isThere(server: Server, document: ServerDocument): Promise<boolean> {
  const answer = await server.get(`/registry/all/v0.1/servers/${encodeURIComponent(document.name)}/versions/${document.version}`)
  return answer.status === 200 && answer.text.startsWith(`{"server":${JSON.stringify(document)},`)
}

/** Which fetch of the changing source is served. */
async function servedFetch(server: Server): Promise<number> {
  const { json } = await server.get('/registry/all/v0.1/servers/io.example%2Fchanging/versions/latest')
  return Number(json.server.version.split('.').at(-1))
}

/** Another version at every fetch. */
async function changingOrigin() {
  let fetches = 0
  const backend = await startBackend((_, response) => {
    fetches++
    response.writeHead(200, { 'content-type': 'application/json' })
    response.end(registryFile([documentOf('io.example/changing', `1.0.${fetches}`)]))
  })
  return {
    url: backend.url,
    get fetches() {
      return fetches
    },
    [Symbol.asyncDispose]: () => backend[Symbol.asyncDispose](),
  }
}
