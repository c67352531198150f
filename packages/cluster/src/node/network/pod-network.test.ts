import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, describe, expect, it } from 'vitest'
import { type ClaimOptions, claimNetwork } from './claim-network.ts'
import { createPodNetwork, type PodPlace } from './pod-network.ts'
import { startResolver } from './resolver.ts'
import { startServiceForwarders } from './service-forwarder.ts'
import { startChild } from './testing/child.ts'
import { eventually } from './testing/eventually.ts'
import { clock, startTestCluster } from './testing/test-cluster.ts'

const cleanups: (() => unknown)[] = []

afterEach(async () => {
  for (const cleanup of cleanups.splice(0).reverse()) await cleanup()
})

async function newNetwork(options: ClaimOptions = {}) {
  const folder = mkdtempSync(join(tmpdir(), 'thv net '))
  cleanups.push(() => rmSync(folder, { recursive: true, force: true }))
  const claimed = await claimNetwork(folder, options)
  cleanups.push(() => claimed.release())
  return { folder, claimed }
}

/** As published servers do it: on every address. */
async function startServer(place: PodPlace, name: string, port: number) {
  const script = `require('node:http').createServer((_, answer) => answer.end('${name}')).listen(${port}, () => console.log('listening'))`
  const child = startChild(process.execPath, ['-e', script], place.env)
  cleanups.push(() => child.stop())
  expect(await child.line()).toBe('listening')
  return child
}

/** One of our own programs: what it prints when it calls this URL. */
async function call(place: PodPlace, url: string): Promise<string | undefined> {
  const child = startChild(process.execPath, [join(import.meta.dirname, 'testing', 'call-main.ts'), url], place.env)
  cleanups.push(() => child.stop())
  return await child.line()
}

const PORT = 7_600

describe.skipIf(process.platform !== 'linux')('the network of a platform', () => {
  it('gives two servers one port, balances between them, and leads our own programs straight to them', async () => {
    const { folder, claimed } = await newNetwork()
    const cluster = await startTestCluster({ serviceRange: claimed.serviceRange })
    cleanups.push(() => cluster.close())
    const { client, caches, events } = cluster
    const onError = (error: unknown) => expect.unreachable(String(error))
    const resolver = await startResolver({ caches, network: claimed, folder })
    cleanups.push(() => resolver.close())
    const network = await createPodNetwork({ claimed, folder, resolver: resolver.endpoint })
    const forwarders = await startServiceForwarders({ client, caches, events, network: claimed, clock, onError })
    cleanups.push(() => forwarders.close())

    const places = [await network.addPod('uid-a'), await network.addPod('uid-b')]
    const servers = await Promise.all(places.map((place, i) => startServer(place, `pod-${i}`, PORT)))
    for (const [i, server] of servers.entries()) expect(await network.unsafeBinds(server.pid, places[i]?.address ?? '')).toEqual([])
    const address = claimed.serviceRange.replace('0.0/17', '0.9')
    await cluster.service('web', { clusterIP: address, ports: [{ port: 8_080 }] })
    await cluster.endpoints(
      'web',
      places.map((place) => `${place.address}:${PORT}`),
    )

    const get = async () => await (await fetch(`http://${address}:8080/`, { headers: { connection: 'close' } })).text()
    await eventually(async () => expect([await get(), await get()].toSorted()).toEqual(['pod-0', 'pod-1']))

    const caller = await network.addPod('uid-c', { namespace: 'default' })
    expect(await call(caller, 'http://web:8080/')).toMatch(/^pod-[01]$/)
    expect(await call(caller, 'http://web.default.svc.cluster.local:8080/')).toMatch(/^pod-[01]$/)
    expect(await call(caller, 'http://nothing.default.svc:8080/')).toMatch(/^backend_dns: there is no Service/)
    expect(await call(caller, `http://${places[0]?.address}:${PORT}/`)).toMatch(/^backend_blocked/)
    await cluster.endpoints('web', [])
    await eventually(async () =>
      expect(await call(caller, 'http://web:8080/')).toBe('backend_refused: no pod behind Service default/web is ready'),
    )
    await resolver.close()
    expect(await call(caller, 'http://web:8080/')).toMatch(/^backend_dns: the platform's resolver cannot be reached/)
  })

  it('keeps the place of a pod until it is removed', async () => {
    const { folder, claimed } = await newNetwork()
    const network = await createPodNetwork({ claimed, folder })
    const place = await network.addPod('uid-a')
    expect(await network.addPod('uid-a')).toEqual(place)
    expect(place.hostAddress).toBe('127.0.0.1')
    expect(place.env).not.toHaveProperty('THV_RESOLVER')
    network.removePod('uid-a')
    expect((await network.addPod('uid-b')).address).not.toBe(place.address)
  })

  it('finds a server that got past the guard', async () => {
    const { folder, claimed } = await newNetwork()
    const network = await createPodNetwork({ claimed, folder })
    const place = await network.addPod('uid-a')
    const { NODE_OPTIONS: _, ...unguarded } = place.env
    const server = await startServer({ ...place, env: unguarded }, 'open', PORT + 1)
    expect(await network.unsafeBinds(server.pid, place.address)).toEqual([`[::]:${PORT + 1}`])
  })
})

describe('the network where there is one address', () => {
  it('puts all pods there, and keeps servers off the others', async () => {
    const { folder, claimed } = await newNetwork({ mode: 'single' })
    const network = await createPodNetwork({ claimed, folder })
    const places = [await network.addPod('uid-a'), await network.addPod('uid-b')]
    expect(places.map(({ address }) => address)).toEqual(['127.0.0.1', '127.0.0.1'])
    const [place] = places
    if (place === undefined) return
    const server = await startServer(place, 'here', PORT + 2)
    expect(await (await fetch(`http://127.0.0.1:${PORT + 2}/`)).text()).toBe('here')
    expect(await network.unsafeBinds(server.pid, '127.0.0.1')).toEqual([])
  })
})
