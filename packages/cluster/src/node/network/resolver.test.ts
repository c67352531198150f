import { once } from 'node:events'
import { existsSync, mkdirSync, mkdtempSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { connect } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { connectHookFromEnv } from '@thv/http/outbound/connect-hook'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { type Resolver, startResolver } from './resolver.ts'
import { eventually } from './testing/eventually.ts'
import { startTestCluster, type TestCluster } from './testing/test-cluster.ts'

const NETWORK = { mode: 'addresses', podRange: '127.216.128.0/17' } as const
const cleanups: (() => unknown)[] = []
let cluster: TestCluster
let folder = ''

beforeEach(async () => {
  folder = mkdtempSync(join(tmpdir(), 'thv-'))
  cluster = await startTestCluster({ serviceRange: '127.216.0.0/17' })
})

afterEach(async () => {
  for (const cleanup of cleanups.splice(0).reverse()) await cleanup()
  await cluster.close()
  rmSync(folder, { recursive: true, force: true })
})

async function start(below = '', mode: 'addresses' | 'single' = 'addresses'): Promise<Resolver> {
  const resolver = await startResolver({ caches: cluster.caches, network: { ...NETWORK, mode }, folder: join(folder, below) })
  cleanups.push(() => resolver.close())
  return resolver
}

/** As a pod of ours asks: a new process each time, so that nothing is remembered. */
async function ask(
  { endpoint }: Resolver,
  host: string,
  { port = 80, namespace = 'default', from = '127.216.128.200' } = {},
): Promise<string> {
  const hook = connectHookFromEnv({ THV_RESOLVER: endpoint, THV_RESOLVER_NAMESPACE: namespace, THV_BIND_ADDRESS: from })
  try {
    const answer = await hook?.resolve(host, port)
    if (answer?.kind === 'addresses') return answer.addresses.map((one) => `${one.address}:${one.port}`).join(' ')
    return answer?.kind === 'alias' ? `alias ${answer.host}` : 'unknown'
  } catch (error) {
    return (error as Error).message
  }
}

/** Sends the text as it is and reads all that comes back. */
async function sendRaw({ endpoint }: Resolver, text: string): Promise<string> {
  const [, port = ''] = /^tcp:127\.0\.0\.1:(\d+):/.exec(endpoint) ?? []
  const socket = endpoint.startsWith('unix:') ? connect(endpoint.slice(5)) : connect(Number(port), '127.0.0.1')
  let answer = ''
  socket
    .on('error', () => undefined)
    .on('data', (chunk) => {
      answer += chunk.toString()
    })
  socket.write(text)
  await once(socket, 'close')
  return answer
}

const A = '127.216.128.1:3000'
const B = '127.216.128.2:3000'

describe('the resolver', () => {
  it('leads every form of a Service’s name to its ready pods', async () => {
    await cluster.service('web', {
      clusterIP: '127.216.0.21',
      ports: [
        { name: 'http', port: 80 },
        { name: 'more', port: 81 },
      ],
    })
    await cluster.endpoints('web', [A, `!${B}`], { port: 'http' })
    await cluster.endpoints('web', ['127.216.128.1:3001'], { port: 'more' })
    const resolver = await start()
    for (const host of [
      'web',
      'web.default',
      'web.default.svc',
      'web.default.svc.cluster.local',
      'WEB.default.svc.',
      'web.default.svc.cluster.local.',
    ])
      expect([host, await ask(resolver, host)]).toEqual([host, A])
    expect(await ask(resolver, 'web', { port: 81 })).toBe('127.216.128.1:3001')
    expect(await ask(resolver, 'web', { namespace: 'other' })).toBe('unknown')
    expect(await ask(resolver, 'web.other')).toBe('unknown')
    expect(await ask(resolver, 'example.com')).toBe('unknown')
    expect(await ask(resolver, 'web', { port: 8_080 })).toBe('Service default/web has no TCP port 8080; it has 80, 81')
    expect(await ask(resolver, 'web.other.svc')).toBe('there is no Service with the name web.other.svc in the cluster')

    await cluster.endpoints('web', [`!${A}`, B], { port: 'http' })
    await eventually(async () => expect(await ask(resolver, 'web')).toBe(B))
    await cluster.endpoints('web', [], { port: 'http' })
    await eventually(async () => expect(await ask(resolver, 'web')).toBe('no pod behind Service default/web is ready'))
  })

  it('takes pods in turn, and keeps a caller with its pod where the Service asks for that', async () => {
    await cluster.service('free', { clusterIP: '127.216.0.2', ports: [{ port: 80 }] })
    await cluster.service('kept', { clusterIP: '127.216.0.3', sessionAffinity: 'ClientIP', ports: [{ port: 80 }] })
    await cluster.endpoints('free', [A, B])
    await cluster.endpoints('kept', [A, B])
    const resolver = await start()
    expect([await ask(resolver, 'free'), await ask(resolver, 'free')].toSorted()).toEqual([`${A} ${B}`, `${B} ${A}`])
    const first = await ask(resolver, 'kept')
    for (let i = 0; i < 4; i++) expect(await ask(resolver, 'kept')).toBe(first)
    const others = new Set<string>()
    for (let i = 0; i < 4; i++) others.add(await ask(resolver, 'kept', { from: `127.216.128.${i + 10}` }))
    expect(others.size).toBe(2)
  })

  it('leads to pods of headless Services, at the port that was asked for', async () => {
    await cluster.service('db', { clusterIP: 'None', ports: [{ port: 5_432 }] })
    await cluster.endpoints('db', [A, B], { hostnames: ['db-0', 'db-1'] })
    const resolver = await start()
    expect(await ask(resolver, 'db', { port: 6_000 })).toBe('127.216.128.1:6000 127.216.128.2:6000')
    for (const host of ['db-1.db.default.svc.cluster.local', 'db-1.db.default.svc', 'db-1.db'])
      expect([host, await ask(resolver, host, { port: 6_000 })]).toEqual([host, '127.216.128.2:6000'])
    expect(await ask(resolver, 'db-7.db.default.svc')).toBe('pod db-7 of Service default/db is not ready or not there')
  })

  it('names what an ExternalName stands for', async () => {
    await cluster.service('out', { type: 'ExternalName', externalName: 'api.example.com' })
    expect(await ask(await start(), 'out')).toBe('alias api.example.com')
  })

  it('does not vouch for other servers of this machine', async () => {
    await cluster.service('web', { clusterIP: '127.216.0.4', ports: [{ port: 80 }] })
    await cluster.endpoints('web', ['127.0.0.1:22', '127.217.128.1:80', A])
    const resolver = await start()
    expect(await ask(resolver, 'web')).toBe(A)
  })

  it('knows pods by reference where all have one address', async () => {
    await cluster.service('web', { clusterIP: '127.216.0.5', ports: [{ port: 80 }] })
    await cluster.endpoints('web', ['127.0.0.1:3000'])
    expect(await ask(await start('', 'single'), 'web')).toBe('127.0.0.1:3000')
  })

  it('lies in the data folder for its owner only, and takes the place of what a killed run left', async () => {
    writeFileSync(join(folder, 'resolver.sock'), 'left over')
    const resolver = await start()
    expect(resolver.endpoint).toBe(`unix:${join(folder, 'resolver.sock')}`)
    expect(statSync(join(folder, 'resolver.sock')).mode & 0o777).toBe(0o600)
    await resolver.close()
    expect(existsSync(join(folder, 'resolver.sock'))).toBe(false)
    expect(await ask(resolver, 'web')).toMatch(/^the platform's resolver cannot be reached/)
  })

  it('goes over a port with a token where the path is too long', async () => {
    await cluster.service('web', { clusterIP: '127.216.0.6', ports: [{ port: 80 }] })
    await cluster.endpoints('web', [A])
    const below = 'x'.repeat(90)
    mkdirSync(join(folder, below))
    const resolver = await start(below)
    expect(resolver.endpoint).toMatch(/^tcp:127\.0\.0\.1:\d+:[\w-]{32}$/)
    expect(await ask(resolver, 'web')).toBe(A)
    const forged = { ...resolver, endpoint: `${resolver.endpoint.slice(0, -1)}!`.replace('!', resolver.endpoint.endsWith('a') ? 'b' : 'a') }
    expect(await ask(forged, 'web')).toBe("the platform's resolver: the token is wrong")
    expect(await sendRaw(resolver, '{"host":"web","port":80}\n')).toBe('{"problem":"the token is wrong"}\n')
  })

  it.each([
    ['no JSON', 'hello\n', '{"problem":"the question is malformed"}\n'],
    ['no object', '[]\n', '{"problem":"the question is malformed"}\n'],
    ['no port', '{"host":"web"}\n', '{"problem":"the question is malformed"}\n'],
    ['a port that is none', '{"host":"web","port":70000}\n', '{"problem":"the question is malformed"}\n'],
    ['too much', 'x'.repeat(10_000), '{"problem":"the question is too long"}\n'],
    ['a hostile name', '{"host":"../../etc/passwd","port":80}\n', '{}\n'],
    ['a name with zeros', '{"host":"web\\u0000.default","port":80}\n', '{}\n'],
    ['__proto__', '{"host":"__proto__","port":80,"namespace":"constructor"}\n', '{}\n'],
  ])('survives %s', async (_, text, answer) => {
    const resolver = await start()
    expect(await sendRaw(resolver, text)).toBe(answer)
    expect(await ask(resolver, 'example.com')).toBe('unknown')
  })
})
