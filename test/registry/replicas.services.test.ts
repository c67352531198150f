import { mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { startBackend } from '@thv/http/testing/backend'
import { describePostgres, testPostgres } from '@thv/testkit/postgres/describe-postgres'
import { expect, onTestFinished, test } from 'vitest'
import { databaseOf, documentOf, eventually, registryFile, registryWorld, type Server } from './registry-world.ts'
import { startTraffic } from './traffic.ts'

const QUICK_SOURCES = ['one', 'two', 'three', 'four', 'five', 'six']

describePostgres('two replicas on one PostgreSQL', () => {
  test('start at once on an empty database, share the work, see each other’s writes, and one takes over from the other that dies or stands still in the middle of a fetch', async () => {
    const origin = await startOrigin()
    const world = registryWorld()
    const config = world.config({
      sources: [
        ...QUICK_SOURCES.map((name) => ({ name, file: { url: `${origin.url}/${name}.json` }, syncPolicy: { interval: '1h' } })),
        // The fetching replica reports its name, which it reads from a file of its working folder.
        { name: 'slow', api: { endpoint: `${origin.url}/slow`, headersFile: '/proc/self/cwd/headers' }, syncPolicy: { interval: '1h' } },
        { name: 'own', managed: {} },
      ],
      registries: [{ name: 'all', sources: [...QUICK_SOURCES, 'slow', 'own'] }],
      sync: { leaseDuration: '5s' },
      database: databaseOf(await testPostgres().createDatabase()),
    })
    const start = (name: string) => {
      const folder = join(world.folder, name)
      mkdirSync(folder)
      writeFileSync(join(folder, 'headers'), `X-Replica: ${name}\n`)
      return world.serve(config, { folder })
    }
    const [left, right] = await Promise.all([start('left'), start('right')])
    await Promise.all([left.ready(), right.ready()])
    for (const name of [...QUICK_SOURCES, 'slow']) {
      expect([name, origin.fetches(name)]).toEqual([name, 1])
      for (const replica of [left, right]) await eventually(`${name} is served`, () => serves(replica, `io.example/${name}`))
    }

    const traffic = { left: startTraffic(left.url, paths), right: startTraffic(right.url, paths) }
    await bothSeeWrites(left, right)

    const fetching = await hangingSync(origin, left)
    const victim = fetching === 'left' ? left : right
    const survivor = victim === left ? right : left
    const [lost, kept] = victim === left ? [traffic.left, traffic.right] : [traffic.right, traffic.left]
    expect(await lost.stop()).toEqual([])
    await victim.kill()
    const heir = await eventually('the other one takes over', () => origin.waiting(fetching))
    expect(heir).toBe(victim === left ? 'right' : 'left')
    origin.release(() => documentOf('io.example/slow', '2.0.0'))
    await eventually('the new version is served', () => serves(survivor, 'io.example/slow', '2.0.0'))
    expect(await survivor.syncStatus('slow')).toMatchObject({ phase: 'complete', attemptCount: 0 })

    const again = await world.serve(config, { folder: join(world.folder, fetching) })
    await again.ready()
    expect(await serves(again, 'io.example/slow', '2.0.0')).toBe(true)
    // One for the start; of the second attempt one that was given up and one that was not.
    expect(QUICK_SOURCES.map(origin.fetches)).toEqual(QUICK_SOURCES.map(() => 1))
    expect(origin.fetches('slow')).toBe(3)

    const replicas = { [fetching]: again, [heir]: survivor }
    const paused = await hangingSync(origin, again)
    replicas[paused]?.child.kill('SIGSTOP')
    const successor = await eventually('the other one takes over', () => origin.waiting(paused))
    origin.release((replica) => documentOf('io.example/slow', replica === paused ? '2.5.0' : '3.0.0'))
    await eventually('the newer version is served', () => serves(replicas[successor] ?? survivor, 'io.example/slow', '3.0.0'))
    replicas[paused]?.child.kill('SIGCONT')
    await eventually('the one that was late gives up', () => replicas[paused]?.lines().some(({ msg }) => msg.startsWith('sync given up')))
    for (const replica of [again, survivor]) {
      await eventually('the newer version is served', () => serves(replica, 'io.example/slow', '3.0.0'))
      expect(await serves(replica, 'io.example/slow', '2.5.0')).toBe(false)
    }
    expect(await kept.stop()).toEqual([])
    expect(await Promise.all([survivor.stop(), again.stop()])).toEqual([0, 0])
  })
})

const paths = [
  '/registry/all/v0.1/servers',
  '/registry/all/v0.1/servers/io.example%2Fone/versions/latest',
  '/registry/all/v0.1/servers?search=example&version=latest',
  '/registry/all/v0.1/x/dev.toolhive/search?q=example',
  '/registry/v0.1/servers/io.example%2Fslow/versions',
]

type Origin = Awaited<ReturnType<typeof startOrigin>>

/** Gives the name of who waits for the origin. */
async function hangingSync(origin: Origin, server: Server): Promise<string> {
  origin.hold()
  expect((await server.call('POST', '/v1/sources/slow/sync')).status).toBe(202)
  return await eventually('somebody fetches', () => origin.waiting())
}

/** Each version is published at one and asked for at the other. */
async function bothSeeWrites(left: Server, right: Server): Promise<void> {
  for (const [n, [writer, reader]] of [[left, right] as const, [right, left] as const, [left, right] as const].entries()) {
    const published = await writer.publish(documentOf('io.example/own', `1.0.${n}`))
    expect(published.status).toBe(200)
    expect(await serves(writer, 'io.example/own', `1.0.${n}`)).toBe(true)
    await eventually('the other replica serves it', () => serves(reader, 'io.example/own', `1.0.${n}`))
    expect((await reader.get('/registry/all/v0.1/servers')).headers.get('etag')).toBe(
      (await writer.get('/registry/all/v0.1/servers')).headers.get('etag'),
    )
  }
}

async function serves(server: Server, name: string, version = '1.0.0'): Promise<boolean> {
  return (await server.get(`/registry/all/v0.1/servers/${encodeURIComponent(name)}/versions/${version}`)).status === 200
}

/** Files, and one registry that can be made to keep its clients waiting. */
async function startOrigin() {
  let documentFor = (_replica: string) => documentOf('io.example/slow')
  let held = false
  let waiting: { readonly replica: string; answer(): void }[] = []
  const pathOf = (url: string) => new URL(url, 'http://x').pathname.slice(1)
  const backend = await startBackend(({ url, headers }, response) => {
    const name = pathOf(url)
    const isSlow = name.startsWith('slow')
    const replica = String(headers['x-replica'])
    const answer = () => {
      const document = isSlow ? documentFor(replica) : documentOf(`io.example/${name.replace('.json', '')}`)
      response.writeHead(200, { 'content-type': 'application/json' }).end(registryFile([document]))
    }
    if (isSlow && held) waiting.push({ replica, answer })
    else answer()
  })
  onTestFinished(() => backend[Symbol.asyncDispose]())
  return {
    url: backend.url,
    fetches: (name: string) =>
      backend.requests.filter(({ url }) => pathOf(url) === `${name}.json` || pathOf(url).startsWith(`${name}/`)).length,
    hold: () => {
      held = true
    },
    /** Waiting replicas, other than the one named. */
    waiting: (other?: string) => waiting.find(({ replica }) => replica !== other)?.replica,
    release(next: typeof documentFor) {
      held = false
      documentFor = next
      for (const { answer } of waiting) answer()
      waiting = []
    },
  }
}
