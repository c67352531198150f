import { once } from 'node:events'
import { createServer, type Socket } from 'node:net'
import { ThvError } from '@thv/kernel/errors'
import { events, services } from '@thv/kube'
import { afterEach, describe, expect, it } from 'vitest'
import type { ClaimedNetwork } from './claim-network.ts'
import { PortForwarder } from './port-forwarder.ts'
import { type ServiceForwarderOptions, startServiceForwarders } from './service-forwarder.ts'
import { eventually } from './testing/eventually.ts'
import { echoNamed, listenOn, open, type TestServer, whoAnswers } from './testing/sockets.ts'
import { clock, startTestCluster, type TestCluster } from './testing/test-cluster.ts'

type Network = Pick<ClaimedNetwork, 'mode' | 'podRange'>

const ADDRESSES: Network = { mode: 'addresses', podRange: '127.211.128.0/17' }
const SINGLE: Network = { mode: 'single', podRange: '127.211.128.0/17' }
const cleanups: (() => unknown)[] = []
const errors: unknown[] = []

afterEach(async () => {
  for (const cleanup of cleanups.splice(0).reverse()) await cleanup()
  expect(errors.splice(0)).toEqual([])
})

async function newCluster(): Promise<TestCluster> {
  const cluster = await startTestCluster({ serviceRange: '127.211.0.0/17' })
  cleanups.push(() => cluster.close())
  return cluster
}

async function start(cluster: TestCluster, network: Network, options: Pick<ServiceForwarderOptions, 'listen'> = {}) {
  const { client, caches, events } = cluster
  const forwarders = await startServiceForwarders({
    client,
    caches,
    events,
    network,
    clock,
    onError: (error) => errors.push(error),
    ...options,
  })
  cleanups.push(() => forwarders.close())
  return forwarders
}

async function pod(address: string, name: string, port = 0): Promise<TestServer> {
  const server = await listenOn(address, echoNamed(name), port)
  cleanups.push(() => server.close())
  return server
}

const at = ({ address, port }: TestServer) => `${address}:${port}`
const PORT = 8_080
const spec = (clusterIP: string) => ({ clusterIP, ports: [{ name: 'http', port: PORT, targetPort: 3_000 }] })

async function eventsOf(cluster: TestCluster, name: string): Promise<string[]> {
  const { items } = await cluster.client.list(events, { namespace: 'default' })
  return items.filter(({ regarding }) => regarding?.name === name).map(({ type, reason, note }) => `${type} ${reason} ${note}`)
}

describe.skipIf(process.platform !== 'linux')('startServiceForwarders', () => {
  it('follows endpoints: only ready ones, by the name of the port, and the Service to its end', async () => {
    const cluster = await newCluster()
    const [a, b, other] = [await pod('127.211.128.1', 'a'), await pod('127.211.128.2', 'b'), await pod('127.211.128.3', 'other')]
    await cluster.service('web', spec('127.211.0.21'))
    await cluster.endpoints('web', [at(a), `!${at(b)}`], { port: 'http' })
    await cluster.endpoints('web', [at(other)], { port: 'metrics' })
    const forwarders = await start(cluster, ADDRESSES)
    const ask = () => whoAnswers('127.211.0.21', PORT)
    await eventually(async () => expect(await ask()).toBe('a'))
    expect(forwarders.listening).toBe(1)

    await cluster.endpoints('web', [`!${at(a)}`, at(b)], { port: 'http' })
    await eventually(async () => expect(await ask()).toBe('b'))
    await cluster.endpoints('web', [`!${at(a)}`, `!${at(b)}`], { port: 'http' })
    await eventually(async () => expect(await ask()).toMatch(/closed|ECONNRESET/))
    await cluster.endpoints('web', [at(a), at(b)], { port: 'http' })
    await eventually(async () => expect([await ask(), await ask()].toSorted()).toEqual(['a', 'b']))

    await cluster.client.delete(services, { namespace: 'default', name: 'web' })
    await eventually(async () => expect(await ask()).toBe('ECONNREFUSED'))
    expect(forwarders.listening).toBe(0)
  })

  it('serves Services that come later, and new ports of those it knows', async () => {
    const cluster = await newCluster()
    await start(cluster, ADDRESSES)
    const a = await pod('127.211.128.4', 'a')
    await cluster.endpoints('late', [at(a)])
    await cluster.service('late', { clusterIP: '127.211.0.2', ports: [{ port: 7_000 }] })
    await eventually(async () => expect(await whoAnswers('127.211.0.2', 7_000)).toBe('a'))
    await cluster.service('late', { clusterIP: '127.211.0.2', ports: [{ port: 7_001 }] })
    await eventually(async () => expect(await whoAnswers('127.211.0.2', 7_001)).toBe('a'))
    await eventually(async () => expect(await whoAnswers('127.211.0.2', 7_000)).toBe('ECONNREFUSED'))
  })

  it('leaves a connection to an endpoint that is gone', async () => {
    const cluster = await newCluster()
    const [a, b] = [await pod('127.211.128.5', 'a'), await pod('127.211.128.6', 'b')]
    await cluster.service('web', spec('127.211.0.3'))
    await cluster.endpoints('web', [at(a)], { port: 'http' })
    await start(cluster, ADDRESSES)
    let client: Socket | undefined
    await eventually(async () => {
      client = await open('127.211.0.3', PORT)
      await once(client, 'data')
    })
    await cluster.endpoints('web', [at(b)], { port: 'http' })
    await eventually(async () => expect(await whoAnswers('127.211.0.3', PORT)).toBe('b'))
    client?.write('ping')
    expect(String((await once(client as Socket, 'data'))[0])).toBe('ping')
    client?.destroy()
  })

  it('lets connections of a deleted Service go on, and ends them when it closes', async () => {
    const cluster = await newCluster()
    const a = await pod('127.211.128.11', 'a')
    await cluster.service('web', spec('127.211.0.10'))
    await cluster.endpoints('web', [at(a)], { port: 'http' })
    const forwarders = await start(cluster, ADDRESSES)
    await eventually(async () => expect(await whoAnswers('127.211.0.10', PORT)).toBe('a'))
    const client = await open('127.211.0.10', PORT)
    await once(client, 'data')
    await cluster.client.delete(services, { namespace: 'default', name: 'web' })
    await eventually(async () => expect(await whoAnswers('127.211.0.10', PORT)).toBe('ECONNREFUSED'))
    client.write('ping')
    expect(String((await once(client, 'data'))[0])).toBe('ping')
    const ended = once(client, 'end')
    await forwarders.close()
    await ended
    client.destroy()
    await eventually(() => expect(a.sockets.size).toBe(0))
  })

  it('says that a port is taken, and takes it when it is free', async () => {
    const cluster = await newCluster()
    const blocker = createServer().listen(PORT, '127.211.0.4')
    await once(blocker, 'listening')
    cleanups.push(() => blocker.close())
    const a = await pod('127.211.128.7', 'a')
    await cluster.service('web', spec('127.211.0.4'))
    await cluster.endpoints('web', [at(a)], { port: 'http' })
    await start(cluster, ADDRESSES)
    await eventually(async () =>
      expect(await eventsOf(cluster, 'web')).toEqual([expect.stringContaining('Warning PortInUse 127.211.0.4:8080')]),
    )
    blocker.close()
    await eventually(async () => expect(await whoAnswers('127.211.0.4', PORT)).toBe('a'))
  })

  it('says that a port is privileged, and serves the others', async () => {
    const cluster = await newCluster()
    const a = await pod('127.211.128.10', 'a')
    const ports = [
      { name: 'low', port: 80 },
      { name: 'http', port: PORT },
    ]
    await cluster.service('web', { clusterIP: '127.211.0.9', ports })
    await cluster.endpoints('web', [at(a)], { port: 'http' })
    // Tests may run as root, who may bind them all.
    const cause = Object.assign(new Error('listen EACCES'), { code: 'EACCES' })
    const denied = new ThvError('listen_failed', 'not bound', { cause, details: { reason: 'EACCES' } })
    await start(cluster, ADDRESSES, {
      listen: async (options) => (options.port < 1_024 ? Promise.reject(denied) : PortForwarder.listen(options)),
    })
    await eventually(async () => expect(await whoAnswers('127.211.0.9', PORT)).toBe('a'))
    await eventually(async () =>
      expect(await eventsOf(cluster, 'web')).toEqual([expect.stringContaining('Warning PortNotBindable 127.211.0.9:80 ')]),
    )
  })

  it('says that UDP is not forwarded, and serves the other port', async () => {
    const cluster = await newCluster()
    const a = await pod('127.211.128.8', 'a')
    await cluster.endpoints('web', [at(a)], { port: 'http' })
    await start(cluster, ADDRESSES)
    const udp = { name: 'dns', port: 5_353, protocol: 'UDP' }
    await cluster.service('web', { clusterIP: '127.211.0.5', ports: [udp, { name: 'http', port: PORT, protocol: 'TCP' }] })
    await eventually(async () => expect(await whoAnswers('127.211.0.5', PORT)).toBe('a'))
    await eventually(async () =>
      expect(await eventsOf(cluster, 'web')).toEqual([expect.stringMatching(/^Warning ProtocolNotForwarded port 5353 is UDP/)]),
    )
  })

  it('does not serve headless Services', async () => {
    const cluster = await newCluster()
    const forwarders = await start(cluster, ADDRESSES)
    await cluster.service('headless', { clusterIP: 'None', ports: [{ port: PORT }] })
    await cluster.service('web', spec('127.211.0.6'))
    await eventually(() => expect(forwarders.listening).toBe(1))
    await new Promise((resolve) => setTimeout(resolve, 50))
    expect(forwarders.listening).toBe(1)
  })

  it('does not lead to other servers of this machine, whatever a slice says', async () => {
    const cluster = await newCluster()
    const secret = await pod('127.0.0.1', 'secret')
    const good = await pod('127.211.128.9', 'good')
    await cluster.service('web', spec('127.211.0.7'))
    await cluster.endpoints('web', [at(secret), at(good)], { port: 'http' })
    await start(cluster, ADDRESSES)
    await eventually(async () => expect(await whoAnswers('127.211.0.7', PORT)).toBe('good'))
    for (let i = 0; i < 5; i++) expect(await whoAnswers('127.211.0.7', PORT)).toBe('good')
    expect(secret.accepted).toBe(0)
  })
})

describe('startServiceForwarders where there is one address', () => {
  const addressOf = async (cluster: TestCluster, key = 'toolhive.stacklok.dev/local-address') =>
    (await cluster.client.get(services, { namespace: 'default', name: 'web' })).metadata.annotations?.[key] ?? ''
  const askAt = (place: string) => whoAnswers('127.0.0.1', Number(place.split(':')[1]))

  it('writes where each port is, keeps it over a restart, and gives way to others', async () => {
    const cluster = await newCluster()
    const a = await pod('127.0.0.1', 'a')
    await cluster.service('web', {
      clusterIP: '127.211.0.8',
      ports: [
        { name: 'http', port: PORT },
        { name: 'more', port: 9_090 },
      ],
    })
    await cluster.endpoints('web', [at(a)], { port: 'http' })
    const forwarders = await start(cluster, SINGLE)
    await eventually(async () => expect(await addressOf(cluster)).toMatch(/^127\.0\.0\.1:\d+$/))
    const place = await addressOf(cluster)
    expect(await addressOf(cluster, 'toolhive.stacklok.dev/local-address-9090')).toMatch(/^127\.0\.0\.1:\d+$/)
    expect(await askAt(place)).toBe('a')
    await forwarders.close()
    await eventually(async () => expect(await askAt(place)).toBe('ECONNREFUSED'))

    const again = await start(cluster, SINGLE)
    await eventually(async () => expect(await askAt(place)).toBe('a'))
    expect(await addressOf(cluster)).toBe(place)
    await again.close()

    await pod('127.0.0.1', 'intruder', Number(place.split(':')[1]))
    await start(cluster, SINGLE)
    await eventually(async () => expect(await addressOf(cluster)).not.toBe(place))
    expect(await askAt(await addressOf(cluster))).toBe('a')
  })
})
