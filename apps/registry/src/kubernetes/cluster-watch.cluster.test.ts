import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { KubeClient } from '@thv/kube'
import { leases, namespaces } from '@thv/kube'
import { adminClient, installCrds } from '@thv/resources/testing/install-crds'
import { describeCluster, sharedCluster, testNamespace } from '@thv/testkit/cluster/test-cluster'
import { gatewayApiProblem, installGatewayApi } from '@thv/testkit/gateway-api/gateway-api'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { until } from '../testing/until.ts'
import { acceptedBy, ask, type Manifest, proxyServiceOf, put, startClusterRegistry, typeOf } from './testing/cluster-world.ts'

const annotation = (name: string) => `toolhive.stacklok.dev/${name}`
const exported = (url: string) => ({ [annotation('registry-export')]: 'true', [annotation('registry-url')]: url })

describeCluster('the kubernetes source, watching', () => {
  const folder = mkdtempSync(join(tmpdir(), 'registry-watch-'))
  let client: KubeClient
  let namespace = ''

  beforeAll(async () => {
    client = adminClient(sharedCluster())
    await installCrds(client)
    namespace = await testNamespace('watch')
  })
  afterAll(async () => {
    await client.close()
    rmSync(folder, { recursive: true, force: true })
  })

  const server = (name: string, annotations: Record<string, string>): Manifest => ({
    kind: 'MCPServer',
    metadata: { name, namespace, annotations },
    spec: { image: 'x.example/y:1', transport: 'sse' },
  })
  /** The interval is longer than any test: only watches can bring a change. */
  const config = (more = '', interval = '1h') =>
    `registries:\n  - name: cluster\n    kubernetes:\n      namespaces: [${namespace}]\n      kubeconfig: {path: ${sharedCluster().kubeconfigPath}}\n      watch: {enabled: true, debounceInterval: 100ms}\n${more}    syncPolicy: {interval: ${interval}}\nauth: {mode: anonymous}\nstorage: {memory: true}\n`
  const name = (own: string) => `dev.stacklok.toolhive/${namespace}.${own}`

  it('shows added, changed and deleted resources without waiting for the interval [000-022] [001-079] [001-081] [001-085] [001-087]', async () => {
    await put(client, server('first', exported('https://first.example/')))
    await using running = await startClusterRegistry(config())
    await running.untilServers((found) => found[name('first')] !== undefined)
    await put(client, server('second', exported('https://second.example/')))
    await running.untilServers((found) => found[name('second')] !== undefined)
    await put(client, server('second', exported('https://changed.example/')))
    await running.untilServers((found) => found[name('second')]?.remotes?.[0]?.url === 'https://changed.example/')
    await client.delete(typeOf(server('first', {})), { namespace, name: 'first' })
    await running.untilServers((found) => found[name('first')] === undefined)
    await put(client, server('second', {}))
    expect(await running.untilServers((found) => Object.keys(found).length === 0)).toEqual({})
  })

  it('is not ready before the first lists [001-091]', async () => {
    await put(client, server('early', exported('https://early.example/')))
    await using running = await startClusterRegistry(config())
    const ready = async () => (await ask(`${running.registry.internalUrl}/readiness`)).status
    // As soon as it says ready, the entries are there.
    await until(async () => (await ready()) === 200)
    expect(Object.keys(await running.servers())).toContain(name('early'))
    await client.delete(typeOf(server('early', {})), { namespace, name: 'early' })
  })

  describe.skipIf(gatewayApiProblem() !== undefined)('with the Gateway API', () => {
    beforeAll(async () => {
      await installGatewayApi(client)
    })

    it('follows routes, Gateways of other namespaces, their addresses and paths [000-024] [000-025] [000-038] [000-075] [000-076] [000-078]', async () => {
      const gatewayNamespace = await testNamespace('gateway')
      const gateway = (address: string): Manifest => ({
        kind: 'Gateway',
        metadata: { name: 'g', namespace: gatewayNamespace },
        spec: {
          gatewayClassName: 'x',
          listeners: [{ name: 'http', port: 80, protocol: 'HTTP', allowedRoutes: { namespaces: { from: 'All' } } }],
        },
        status: { addresses: [{ type: 'Hostname', value: address }] },
      })
      const route = (path: string, annotations: Record<string, string>): Manifest => ({
        kind: 'HTTPRoute',
        metadata: { name: 'r', namespace, annotations },
        spec: {
          parentRefs: [{ name: 'g', namespace: gatewayNamespace }],
          rules: [{ matches: [{ path: { type: 'PathPrefix', value: path } }], backendRefs: [{ name: 'routed', port: 8080 }] }],
        },
      })
      const opted = { [annotation('registry-export')]: 'true' }
      const owner = await put(client, server('routed', {}))
      await put(client, proxyServiceOf(owner, 'MCPServer', 'routed'))
      await put(client, gateway('one.example'))
      const plain = route('/a', {})
      await put(client, { ...plain, status: acceptedBy(plain) })
      await using running = await startClusterRegistry(config())
      const url = async (wanted: string | undefined) =>
        await running.untilServers((found) => found[name('routed')]?.remotes?.map((remote) => remote.url).join() === wanted)
      await put(client, server('beside', exported('https://beside.example/')))
      await running.untilServers((found) => found[name('beside')] !== undefined)
      expect((await running.servers())[name('routed')]).toBeUndefined()
      await put(client, route('/a', opted))
      await url('http://one.example/a')
      await put(client, gateway('two.example'))
      await url('http://two.example/a')
      await put(client, route('/b', opted))
      await url('http://two.example/b')
      await put(client, route('/b', {}))
      await url(undefined)
      await put(client, route('/b', opted))
      await url('http://two.example/b')
      await client.delete(namespaces, { name: gatewayNamespace })
      await url(undefined)
    })

    it('follows the Gateways of at most 64 namespaces, however many its routes name, and says so', async () => {
      const own = await testNamespace('many')
      const route = (index: number): Manifest => ({
        kind: 'HTTPRoute',
        metadata: { name: `many-${index}`, namespace: own, annotations: { [annotation('registry-export')]: 'true' } },
        spec: {
          parentRefs: Array.from({ length: 32 }, (_, at) => ({ name: 'g', namespace: `nowhere-${index}-${at}` })),
          rules: [{ backendRefs: [{ name: 'none', port: 8080 }] }],
        },
      })
      for (const index of [1, 2, 3]) await put(client, route(index))
      const beside = server('beside', exported('https://beside.example/'))
      await put(client, { ...beside, metadata: { ...beside.metadata, namespace: own } })
      await using running = await startClusterRegistry(config().replace(`namespaces: [${namespace}]`, `namespaces: [${own}]`))
      await running.untilServers((found) => found[`dev.stacklok.toolhive/${own}.beside`] !== undefined)
      await until(() => running.registry.lines.find(({ msg }) => msg.includes('routes name Gateways of more than 64 namespaces')))
      expect(Object.keys(await running.servers())).toEqual([`dev.stacklok.toolhive/${own}.beside`])
    })
  })

  it('reads the cluster only while it holds the Lease, and hands it over at a stop [001-093] [001-095] [001-096] [001-103] [001-105] [001-107]', async () => {
    await put(client, server('led', exported('https://led.example/')))
    const election = `      leaderElection: {enabled: true, namespace: ${namespace}, leaseDuration: 15s, renewDeadline: 10s, retryPeriod: 200ms}\n`
    const holder = async () =>
      (await client.tryGet(leases, { namespace, name: 'toolhive-registry-kubernetes-source' }))?.spec?.holderIdentity ?? ''
    const leaderOf = async (url: string | undefined) => ((await (await ask(`${url}/health`)).json()) as { leader?: boolean }).leader
    const first = await startClusterRegistry(config(election))
    try {
      await first.untilServers((found) => found[name('led')] !== undefined)
      const leader = await holder()
      expect(leader).not.toBe('')
      expect(await leaderOf(first.registry.internalUrl)).toBe(true)

      await using second = await startClusterRegistry(config(election))
      await until(async () => (await leaderOf(second.registry.internalUrl)) === false)
      // It has a store of its own, so it does not see what the leader writes.
      const readiness = await ask(`${second.registry.internalUrl}/readiness`)
      expect(readiness.status).toBe(503)
      expect(await readiness.json()).toMatchObject({ leader: false })
      expect(await second.servers()).toEqual({})

      await first[Symbol.asyncDispose]()
      await second.untilServers((found) => found[name('led')] !== undefined)
      expect(await holder()).not.toBe(leader)
      expect(await leaderOf(second.registry.internalUrl)).toBe(true)
      const metrics = await (await ask(`${second.registry.internalUrl}/metrics`)).text()
      expect(metrics).toMatch(/^thv_registry_leader 1$/m)
      expect(metrics).toMatch(/^thv_registry_leader_transitions_total 1$/m)
    } finally {
      await first[Symbol.asyncDispose]()
    }
  })
})
