import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { KubeClient } from '@thv/kube'
import { manifestsIn } from '@thv/resources/testing/fixtures'
import { adminClient, installCrds } from '@thv/resources/testing/install-crds'
import { isExcluded } from '@thv/testkit/cluster/process/needs'
import { describeCluster, sharedCluster, testNamespace } from '@thv/testkit/cluster/test-cluster'
import { gatewayApiProblem, installGatewayApi } from '@thv/testkit/gateway-api/gateway-api'
import { afterAll, beforeAll, it } from 'vitest'
import { acceptedBy, accountKubeconfig, type Manifest, proxyServiceOf, put, startClusterRegistry, typeOf } from './testing/cluster-world.ts'

const annotation = (name: string) => `toolhive.stacklok.dev/${name}`
const exported = (url: string, more: Record<string, string> = {}) => ({
  [annotation('registry-export')]: 'true',
  [annotation('registry-url')]: url,
  ...more,
})
const seed = (file: string) =>
  manifestsIn(readFileSync(new URL(`../../../../test/fixtures/seeds/${file}`, import.meta.url), 'utf8')) as unknown as Manifest[]
const only = (manifests: readonly Manifest[]): Manifest => {
  const [first] = manifests
  if (first === undefined) throw new Error('no manifest')
  return first
}

const hasGatewayApi = gatewayApiProblem() === undefined

/* Side by side, each in a namespace of its own: they mostly wait for the next poll. */
describeCluster('the kubernetes source, polling', () => {
  const folder = mkdtempSync(join(tmpdir(), 'registry-kube-'))
  let client: KubeClient
  let kubeconfig = ''

  beforeAll(async () => {
    client = adminClient(sharedCluster())
    await installCrds(client)
    if (hasGatewayApi) await installGatewayApi(client)
    const namespace = await testNamespace('export')
    for (const manifest of seed('001-rbac-registry-reader.yaml')) await put(client, manifest)
    kubeconfig = await accountKubeconfig(sharedCluster(), client, { namespace, clusterRole: 'toolhive-registry-reader', folder })
  })
  afterAll(async () => {
    await client.close()
    rmSync(folder, { recursive: true, force: true })
  })

  /** A namespace, and what the tests say in it. */
  async function place() {
    const namespace = await testNamespace('export')
    const mcp = (kind: string, name: string, annotations: Record<string, string>, more: object = {}): Manifest => ({
      kind,
      metadata: { name, namespace, annotations },
      spec: { MCPServer: { image: 'x.example/y:1' }, MCPRemoteProxy: { remoteUrl: 'https://far.example' } }[kind] ?? {
        groupRef: { name: 'g' },
        incomingAuth: { type: 'anonymous' },
      },
      ...more,
    })
    const config = (more = '', path = kubeconfig) =>
      `registries:\n  - name: cluster\n    kubernetes:\n      namespaces: [${namespace}]\n      kubeconfig: {path: ${path}, context: test}\n${more}    syncPolicy: {interval: 1s}\nauth: {mode: anonymous}\nstorage: {memory: true}\n`
    const name = (own: string) => `dev.stacklok.toolhive/${namespace}.${own}`
    return { namespace, mcp, config, name }
  }

  it.concurrent('lists annotated resources of all three kinds, follows changes and forgets what is gone [000-004] [000-095] [000-120] [000-121] [001-003] [001-004] [001-009] [001-014] [001-016] [001-020] [001-021] [001-022] [001-026] [001-074] [001-078] [001-111] [001-113] [001-118]', async ({
    expect,
  }) => {
    const { namespace, mcp, config, name } = await place()
    const other = await testNamespace('export')
    await put(client, mcp('MCPServer', 'direct', exported('https://a.example/x', { [annotation('registry-description')]: 'A server' })))
    await put(
      client,
      mcp('MCPRemoteProxy', 'remote', exported('https://b.example/y'), { spec: { remoteUrl: 'https://far.example', transport: 'sse' } }),
    )
    await put(client, mcp('VirtualMCPServer', 'virtual', exported('https://c.example/z')))
    await put(client, mcp('MCPServer', 'silent', {}))
    await put(client, {
      ...mcp('MCPServer', 'elsewhere', exported('https://d.example/')),
      metadata: { name: 'elsewhere', namespace: other, annotations: exported('https://d.example/') },
    })
    await using running = await startClusterRegistry(config())
    const servers = await running.untilServers((found) => Object.keys(found).length === 3)
    expect(servers[name('direct')]).toMatchObject({
      description: 'A server',
      version: '1.0.0',
      remotes: [{ type: 'streamable-http', url: 'https://a.example/x' }],
    })
    expect(servers[name('remote')]?.remotes).toEqual([{ type: 'sse', url: 'https://b.example/y' }])
    expect(servers[name('virtual')]).toMatchObject({
      description: `MCP server ${namespace}/virtual`,
      remotes: [{ type: 'streamable-http', url: 'https://c.example/z' }],
    })

    await put(client, mcp('MCPServer', 'direct', exported('https://a.example/new')))
    await running.untilServers((found) => found[name('direct')]?.remotes?.[0]?.url === 'https://a.example/new')
    await put(
      client,
      mcp('MCPServer', 'direct', { [annotation('registry-export')]: 'false', [annotation('registry-url')]: 'https://a.example/x' }),
    )
    await client.delete(typeOf(mcp('MCPRemoteProxy', 'remote', {})), { namespace, name: 'remote' })
    const left = await running.untilServers((found) => Object.keys(found).length === 1)
    expect(Object.keys(left)).toEqual([name('virtual')])
  })

  it.concurrent('selects by labels in both syntaxes [001-015]', async ({ expect }) => {
    const { mcp, config, name } = await place()
    const labelled = (own: string, labels: Record<string, string>): Manifest => {
      const manifest = mcp('MCPServer', own, exported(`https://${own}.example/`))
      return { ...manifest, metadata: { ...manifest.metadata, labels } }
    }
    await put(client, labelled('one', { team: 'a', tier: 'x' }))
    await put(client, labelled('two', { team: 'a', tier: 'y' }))
    await put(client, labelled('three', { team: 'b', tier: 'x' }))
    await using equality = await startClusterRegistry(config('      labelSelector: "team=a,tier=x"\n'))
    await using sets = await startClusterRegistry(config('      labelSelector: "team in (a),tier notin (x),!old"\n'))
    expect(Object.keys(await equality.untilServers((found) => Object.keys(found).length > 0))).toEqual([name('one')])
    expect(Object.keys(await sets.untilServers((found) => Object.keys(found).length > 0))).toEqual([name('two')])
  })

  const refused = 'fails a sync that may not list a namespace, and keeps the entries [001-064]'
  if (!isExcluded(refused, ['rbac']))
    it.concurrent(refused, async ({ expect }) => {
      const { namespace, mcp, config, name } = await place()
      const path = await accountKubeconfig(sharedCluster(), client, { namespace, clusterRole: 'toolhive-registry-reader', folder })
      await put(client, mcp('MCPServer', 'kept', exported('https://k.example/')))
      await using running = await startClusterRegistry(config('', path))
      await running.untilServers((found) => found[name('kept')] !== undefined)
      await client.delete(typeOf({ kind: 'ClusterRoleBinding', metadata: { name: '' } }), { name: `${namespace}-reader` })
      const line = await until(running.registry.lines, 'sync failed; the last good data stay')
      expect(String(line['error'])).toMatch(/mcpservers.*forbidden|forbidden.*mcpservers/s)
      expect(Object.keys(await running.servers())).toEqual([name('kept')])
    })

  it.concurrent('adds the URL to the entry of a known image, and uncovers that entry again [000-045] [000-048] [000-049] [001-007]', async ({
    expect,
  }) => {
    const { namespace, mcp, name } = await place()
    await put(
      client,
      mcp('MCPServer', 'known', exported('https://known.example/'), { spec: { image: 'ghcr.io/x/known:2', transport: 'sse' } }),
    )
    const entry = {
      name: 'io.github.x/known',
      description: 'From the source',
      version: '2.0.0',
      packages: [{ registryType: 'oci', identifier: 'ghcr.io/x/known:2', transport: { type: 'stdio' } }],
    }
    const file = join(folder, 'known.json')
    writeFileSync(file, JSON.stringify({ data: { servers: [entry] } }))
    const sources = `sources:\n  - name: live\n    kubernetes: {namespaces: [${namespace}], kubeconfig: {path: ${kubeconfig}}}\n    syncPolicy: {interval: 1s}\n  - name: file\n    file: {path: ${file}}\nregistries: [{name: cluster, sources: [live, file]}]\nauth: {mode: anonymous}\nstorage: {memory: true}\n`
    await using running = await startClusterRegistry(sources)
    const servers = await running.untilServers((found) => found[entry.name]?.remotes !== undefined)
    expect(servers[entry.name]).toMatchObject({ ...entry, remotes: [{ type: 'sse', url: 'https://known.example/' }] })
    expect(servers[name('known')]).toBeUndefined()
    await put(client, mcp('MCPServer', 'known', {}, { spec: { image: 'ghcr.io/x/known:2' } }))
    const uncovered = await running.untilServers((found) => found[entry.name] !== undefined && found[entry.name]?.remotes === undefined)
    expect(uncovered[entry.name]).toEqual(entry)
  })

  it.skipIf(!hasGatewayApi).concurrent(
    'follows an annotated route to its resource and its Gateway, and reports what it leaves out [000-002] [000-015] [000-083] [000-094] [000-122] [001-035] [001-037] [001-038] [001-039] [001-042] [001-045] [001-047] [001-050] [001-053]',
    async ({ expect }) => {
      const { namespace, mcp, config, name } = await place()
      const gatewayNamespace = await testNamespace('gateway')
      const routed = await put(client, mcp('MCPServer', 'routed', {}, { spec: { image: 'x.example/y:1', transport: 'sse' } }))
      await put(client, proxyServiceOf(routed, 'MCPServer', 'routed'))
      const gateway = { ...only(seed('gateway/001-gateway.yaml')), metadata: { name: 'main-gateway', namespace: gatewayNamespace } }
      await put(client, gateway)
      const printed = only(seed('gateway/001-httproute.yaml'))
      const route: Manifest = JSON.parse(
        JSON.stringify({ ...printed, metadata: { ...printed.metadata, namespace } })
          .replaceAll('gateway-system', gatewayNamespace)
          .replaceAll('"my-mcp-server"', '"routed"'),
      )
      await put(client, route)
      await using running = await startClusterRegistry(config())
      await until(running.registry.lines, `RouteNotAccepted: HTTPRoute ${namespace}/my-mcp-server-route`)
      expect((await running.servers())[name('routed')]).toBeUndefined()

      await put(client, { ...route, status: acceptedBy(route) })
      const servers = await running.untilServers((found) => found[name('routed')] !== undefined)
      expect(servers[name('routed')]?.remotes).toEqual([{ type: 'sse', url: 'https://mcp.example.com/servers/my-mcp-server' }])
      expect(servers[name('routed')]?._meta?.['dev.stacklok.toolhive/export']).toMatchObject({
        remotes: [{ origin: { kind: 'HTTPRoute', namespace, name: 'my-mcp-server-route' }, gateway: 'main-gateway' }],
      })

      await put(client, { ...gateway, status: { addresses: [] } })
      await running.untilServers((found) => found[name('routed')] === undefined)
      await put(client, { ...gateway, status: { addresses: [{ type: 'Hostname', value: 'mcp.example.com' }] } })
      await running.untilServers((found) => found[name('routed')] !== undefined)
      await client.delete(typeOf(route), { namespace, name: 'my-mcp-server-route' })
      await running.untilServers((found) => found[name('routed')] === undefined)
    },
  )
})

type Lines = readonly { readonly msg: string; readonly [field: string]: unknown }[]

async function until(lines: Lines, text: string): Promise<Lines[number]> {
  const deadline = performance.now() + 60_000
  for (;;) {
    const found = lines.find(({ msg }) => msg.includes(text))
    if (found) return found
    if (performance.now() > deadline) throw new Error(`nothing logged ${text}: ${JSON.stringify(lines.slice(-5))}`)
    await new Promise((resolve) => setTimeout(resolve, 20))
  }
}
