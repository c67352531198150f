import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { discoveryOf } from '@thv/catalog/discover/discover'
import { noKnownServers } from '@thv/catalog/discover/entry/known-servers'
import { systemClock } from '@thv/kernel/clock'
import {
  bearerToken,
  clusterRoleBindings,
  clusterRoles,
  createKubeClient,
  type KubeClient,
  type KubeObject,
  loadKubeconfig,
  serviceAccounts,
} from '@thv/kube'
import { customResourceDefinitions } from '@thv/kube/objects/resource-types'
import { type MCPRegistry, mcpRegistryType } from '@thv/resources/kinds/mcp-registry/schema'
import { adminClient, installCrds } from '@thv/resources/testing/install-crds'
import { type FaultyProxy, startFaultyProxy } from '@thv/testkit/cluster/faults/faulty-proxy'
import { itNeeds } from '@thv/testkit/cluster/process/needs'
import { describeCluster, ensureNamespace } from '@thv/testkit/cluster/test-cluster'
import { exportedGatewayKinds, gatewayApiProblem, installGatewayApi } from '@thv/testkit/gateway-api/gateway-api'
import { startTestServer, type TestServer } from '@thv/testkit/test-server'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { eventually, startOperator } from '../../apps/operator/src/testing/operator-harness.ts'
import { readCluster } from '../../apps/registry/src/kubernetes/cluster-reader.ts'
import { ClusterWatch } from '../../apps/registry/src/kubernetes/cluster-watch.ts'
import {
  acceptedBy,
  type ClusterRegistry,
  type Manifest,
  proxyServiceOf,
  put,
  startClusterRegistry,
  typeOf,
} from '../../apps/registry/src/kubernetes/testing/cluster-world.ts'
import { startTraffic } from '../registry/traffic.ts'
import { applyChartRights, type Rule, without } from './chart-rights.ts'
import { startRegistryPod } from './export-world.ts'

/*
 * A registry that watches a cluster, and everything that can happen to the API server and the way to it, under a storm of changes and
 * constant reads. After each fault it serves what a fresh reading of the whole cluster gives, entry by entry.
 */

const NAMESPACE = 'faults'
const NAMES = 20
/** Waits after failures grow to half a minute. */
const PATIENCE_MS = 120_000
const PATHS = ['/registry/cluster/v0.1/servers', '/registry/cluster/v0.1/servers?version=latest', '/registry/cluster/v0.1/servers?search=s']
const annotation = (name: string) => `toolhive.stacklok.dev/${name}`
const hasGatewayApi = gatewayApiProblem() === undefined

describeCluster('an export under faults', () => {
  const folder = mkdtempSync(join(tmpdir(), 'export-faults-'))
  const kubeconfig = join(folder, 'kubeconfig')
  let server: TestServer
  let proxy: FaultyProxy
  let truth: KubeClient

  beforeAll(async () => {
    server = await startTestServer({ uncachedResources: ['mcpservers.toolhive.stacklok.dev'] })
    truth = adminClient(server)
    await installCrds(truth)
    if (hasGatewayApi) await installGatewayApi(truth, exportedGatewayKinds)
    await ensureNamespace(NAMESPACE, server)
    proxy = await startFaultyProxy(server.url)
  })
  afterAll(async () => {
    await proxy?.close()
    await truth?.close()
    await server?.stop()
    rmSync(folder, { recursive: true, force: true })
  })

  const mcpServer = (name: string, url?: string): Manifest => ({
    kind: 'MCPServer',
    metadata: {
      name,
      namespace: NAMESPACE,
      ...(url && { annotations: { [annotation('registry-export')]: 'true', [annotation('registry-url')]: url } }),
    },
    spec: { image: 'x.example/y:1', transport: 'sse' },
  })

  /** A server behind a route. */
  async function putRouted(): Promise<void> {
    const owner = await put(truth, mcpServer('routed'))
    await put(truth, proxyServiceOf(owner, 'MCPServer', 'mcp-routed-proxy'))
    await putRoute()
  }

  const gateway = (address?: string): Manifest => ({
    kind: 'Gateway',
    metadata: { name: 'edge', namespace: NAMESPACE },
    spec: { gatewayClassName: 'x', listeners: [{ name: 'http', port: 80, protocol: 'HTTP' }] },
    status: { addresses: address === undefined ? [] : [{ type: 'Hostname', value: address }] },
  })

  async function putRoute(): Promise<void> {
    await put(truth, gateway('edge.example'))
    const route: Manifest = {
      kind: 'HTTPRoute',
      metadata: { name: 'r', namespace: NAMESPACE, annotations: { [annotation('registry-export')]: 'true' } },
      spec: { parentRefs: [{ name: 'edge' }], rules: [{ backendRefs: [{ name: 'mcp-routed-proxy', port: 8080 }] }] },
    }
    await put(truth, { ...route, status: acceptedBy(route) })
  }

  async function useAccount(name: string): Promise<void> {
    const token = await server.serviceAccountToken({ namespace: NAMESPACE, name })
    await truth.apply(
      typeOf({ kind: 'ClusterRoleBinding', metadata: { name: '' } }),
      {
        metadata: { name: `faults-${name}` },
        subjects: [{ kind: 'ServiceAccount', name, namespace: NAMESPACE }],
        roleRef: { apiGroup: 'rbac.authorization.k8s.io', kind: 'ClusterRole', name: 'cluster-admin' },
      } as KubeObject,
      { fieldManager: 'test', force: true },
    )
    const ca = Buffer.from(server.caPem).toString('base64')
    writeFileSync(
      kubeconfig,
      JSON.stringify({
        ...{ apiVersion: 'v1', kind: 'Config', 'current-context': 'test' },
        clusters: [{ name: 'test', cluster: { server: proxy.url, 'certificate-authority-data': ca } }],
        users: [{ name: 'test', user: { token } }],
        contexts: [{ name: 'test', context: { cluster: 'test', user: 'test' } }],
      }),
    )
  }

  /** Of the whole cluster, past the proxy. */
  async function fresh(): Promise<Map<string, unknown>> {
    const source = { namespaces: [NAMESPACE] }
    const signal = AbortSignal.timeout(30_000)
    const { objects } = await readCluster({ client: truth, clock: systemClock, signal, source, routesWereReadable: false })
    const { entries } = discoveryOf(objects, { mode: 'server', crossNamespaceGateway: 'accepted' }, noKnownServers).result()
    return new Map(entries.map(({ name, text }) => [name, JSON.parse(text)]))
  }

  const served = async (registry: ClusterRegistry) => new Map(Object.entries(await registry.servers()))

  /** Creates, edits and deletes exported servers. What fails, because the server is away, is tried again. */
  function startStorm() {
    let count = 0
    let isStopped = false
    const running = (async () => {
      while (!isStopped) {
        const name = `s${count % NAMES}`
        try {
          if (count % 7 === 3) await truth.delete(typeOf(mcpServer(name)), { namespace: NAMESPACE, name })
          else await put(truth, mcpServer(name, `https://${name}.example/${count}`))
        } catch {
          // the next change shows that it is back
        }
        count++
        await sleep(10)
      }
    })()
    return {
      more: async (changes: number) => {
        const goal = count + changes
        await eventually(`${changes} more changes`, async () => count >= goal, PATIENCE_MS)
      },
      stop: async () => {
        isStopped = true
        await running
      },
    }
  }

  /** Each begins and ends within; `more` lets changes happen meanwhile. */
  const faults: readonly (readonly [string, (more: (changes: number) => Promise<void>) => Promise<void>])[] = [
    ['all connections are reset', async () => void proxy.dropAll()],
    ['connections are half-open', async () => proxy.blackhole({ existingOnly: true })],
    [
      'the API server is killed and restarted',
      async () => {
        await server.kill()
        await server.restart()
      },
    ],
    [
      'the history is compacted while the network is away',
      async (more) => {
        proxy.blackhole()
        await more(20)
        await server.compact()
        await more(5)
        proxy.dropAll()
        proxy.heal()
      },
    ],
    [
      'the token is revoked and the kubeconfig replaced',
      async (more) => {
        await truth.delete(serviceAccounts, { namespace: NAMESPACE, name: 'first' })
        proxy.dropAll()
        await more(20)
        await useAccount('second')
      },
    ],
    ...(hasGatewayApi
      ? ([
          [
            'a Gateway loses its address, is deleted, and comes back with another',
            async (more: (changes: number) => Promise<void>) => {
              await put(truth, gateway())
              await more(10)
              await truth.delete(typeOf(gateway()), { namespace: NAMESPACE, name: 'edge' })
              await more(10)
              await put(truth, gateway('other.example'))
            },
          ],
          [
            'the Gateway API is removed and installed again',
            async (more: (changes: number) => Promise<void>) => {
              const keys = exportedGatewayKinds.map((plural) => ({ name: `${plural}.gateway.networking.k8s.io` }))
              await Promise.all(keys.map((key) => truth.delete(customResourceDefinitions, key)))
              await more(20)
              for (const key of keys)
                await eventually(
                  `${key.name} is gone`,
                  async () => (await truth.tryGet(customResourceDefinitions, key)) === undefined,
                  PATIENCE_MS,
                )
              await installGatewayApi(truth, exportedGatewayKinds)
              await eventually(
                'the route is there again',
                async () => {
                  await putRoute()
                  return true
                },
                PATIENCE_MS,
              )
            },
          ],
        ] as const)
      : []),
  ]

  test('after each it serves what a fresh reading gives, entry by entry, and no read fails', async () => {
    await useAccount('first')
    if (hasGatewayApi) await putRouted()
    const config = {
      registries: [
        {
          name: 'cluster',
          kubernetes: { namespaces: [NAMESPACE], kubeconfig: { path: kubeconfig }, watch: { enabled: true, debounceInterval: '100ms' } },
          syncPolicy: { interval: '1h' },
        },
      ],
      auth: { mode: 'anonymous' },
      storage: { memory: true },
    }
    await using registry = await startClusterRegistry(JSON.stringify(config), {
      clusterProbeMs: 300,
      // A watch that is silent for longer is taken for dead; minutes outside of tests.
      connectCluster: async () => {
        const connection = await loadKubeconfig({ path: kubeconfig })
        return { client: createKubeClient(connection, { watchBodyTimeoutMs: 1_500 }), namespace: NAMESPACE, server: connection.server }
      },
    })
    await eventually('the first result', async () => (await served(registry)).size === (await fresh()).size, PATIENCE_MS)
    const reads = startTraffic(registry.registry.url, PATHS)
    for (const [name, fault] of faults) {
      const storm = startStorm()
      await storm.more(20)
      await fault(storm.more)
      await storm.more(20)
      await storm.stop()
      const wanted = await fresh()
      expect([name, wanted.size > 5]).toEqual([name, true])
      await eventually(
        `${name}: it serves what is there`,
        async () => {
          expect(await served(registry)).toEqual(wanted)
          return true
        },
        PATIENCE_MS,
      )
      await reads.more(20)
    }
    expect(await reads.stop()).toEqual([])
  }, 600_000)

  itNeeds(
    ['rbac'],
    'all namespaces are exported with the rights of the chart, and with no verb less',
    async () => {
      for (const name of ['toolhive-system', 'near', 'far']) await ensureNamespace(name, server)
      const { namespace, token, exportRole, exportRules } = await applyChartRights(server, truth)
      const everywhere = { TOOLHIVE_REGISTRY_EXPORT_NAMESPACES: '*', TOOLHIVE_REGISTRY_EXPORT_CLUSTER_ROLE: exportRole }
      const operator = await startOperator({ cluster: server, namespace, token, env: { WATCH_NAMESPACE: '', ...everywhere } })
      try {
        for (const place of ['near', 'far']) {
          const manifest = mcpServer('listed', `https://${place}.example/`)
          await put(truth, { ...manifest, metadata: { ...manifest.metadata, namespace: place } })
        }
        const key = { namespace, name: 'all' }
        const spec = { registries: [{ name: 'published', managed: {} }], export: { namespaces: ['*'] } }
        await truth.apply(mcpRegistryType, { metadata: key, spec } as MCPRegistry, { fieldManager: 'test', force: true })
        const binding = { name: `${namespace}.all.registry-export` }
        await eventually('the ClusterRoleBinding', () => truth.tryGet(clusterRoleBindings, binding), PATIENCE_MS)
        {
          await using pod = await startRegistryPod(server, truth, key)
          const names = ['near', 'far'].map((place) => `dev.stacklok.toolhive/${place}.listed`)
          await pod.untilServers('the servers of all namespaces', (found) => names.every((name) => name in found))
        }
        await expectEachVerb(`${key.name}-registry-api`, exportRole, exportRules)
        await truth.delete(mcpRegistryType, key)
        await eventually('no ClusterRoleBinding', async () => (await truth.tryGet(clusterRoleBindings, binding)) === undefined, PATIENCE_MS)
        // Its finalizer goes after the binding.
        await eventually('no registry', async () => (await truth.tryGet(mcpRegistryType, key)) === undefined, PATIENCE_MS)
      } finally {
        await operator.stop()
      }
    },
    600_000,
  )

  /** A reading as the account of the pods says which right is missing, for each that is taken away. */
  async function expectEachVerb(account: string, role: string, rules: readonly Rule[]): Promise<void> {
    const token = await server.serviceAccountToken({ namespace: 'toolhive-system', name: account })
    const say = async (): Promise<string> => {
      const watch = new ClusterWatch({
        source: {},
        exportOptions: { mode: 'server', crossNamespaceGateway: 'accepted' },
        ...{ intervalMs: 3_600_000, debounceMs: 100, probeMs: 200, clock: systemClock, random: Math.random, onChange: () => {} },
        connect: async () => createKubeClient({ server: server.url, tls: { ca: server.caPem }, auth: bearerToken(token) }),
      })
      try {
        await watch.read(noKnownServers, { signal: AbortSignal.timeout(30_000) })
        await sleep(300) // for a watch that is refused after its list
        return (await watch.read(noKnownServers, { signal: AbortSignal.timeout(30_000) })).notes.join()
      } catch (error) {
        return String(error)
      } finally {
        await watch.close()
      }
    }
    const setRules = (changed: readonly Rule[]) => truth.patch(clusterRoles, { name: role }, { kind: 'merge', body: { rules: changed } })
    for (const [resource, verb] of [
      ['mcpservers', 'list'],
      ['mcpremoteproxies', 'watch'],
      ['virtualmcpservers', 'watch'],
      ...(hasGatewayApi ? [['httproutes', 'list'] as const, ['httproutes', 'watch'] as const] : []),
    ] as const) {
      await setRules(without(rules, resource, verb))
      await eventually(
        `without ${verb} on ${resource} it says so`,
        async () => {
          const said = await say()
          expect(said).toMatch(new RegExp(`${resource}.*forbidden|forbidden.*${resource}`, 's'))
          return true
        },
        PATIENCE_MS,
      )
    }
    await setRules(rules)
    await eventually(
      'with all of them it says nothing',
      async () => {
        expect(await say()).toBe('')
        return true
      },
      PATIENCE_MS,
    )
  }
})
