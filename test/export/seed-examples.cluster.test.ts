import { configMaps, events, type KubeClient, roleBindings } from '@thv/kube'
import { type MCPRegistry, mcpRegistryType } from '@thv/resources/kinds/mcp-registry/schema'
import { adminClient } from '@thv/resources/testing/install-crds'
import { describeCluster, ensureNamespace, sharedCluster } from '@thv/testkit/cluster/test-cluster'
import { gatewayApiProblem, installGatewayApi } from '@thv/testkit/gateway-api/gateway-api'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { eventually, type OperatorUnderTest, startOperator } from '../../apps/operator/src/testing/operator-harness.ts'
import {
  acceptedBy,
  type Manifest,
  proxyServiceOf,
  put,
  type ServedDocument,
  typeOf,
} from '../../apps/registry/src/kubernetes/testing/cluster-world.ts'
import { exportedFiles, type RegistryPod, seed, startRegistryPod } from './export-world.ts'

/* The examples of the design documents, in the namespaces that they name, from their manifests to the answer of the registry API. */

const SERVERS = 'mcp-servers'
const GATEWAYS = 'gateway-system'
const PRODUCTION = 'production'
/** The namespace of the Gateways may be read by registries of others. */
const OPERATOR = {
  namespace: SERVERS,
  env: { WATCH_NAMESPACE: [SERVERS, GATEWAYS, PRODUCTION].join(','), TOOLHIVE_REGISTRY_EXPORT_NAMESPACES: GATEWAYS },
  exportDebounceMs: 100,
}

/** As the documents print them. */
const ANALYTICS = {
  name: 'dev.stacklok.toolhive/mcp-servers.internal-analytics',
  description: 'Internal analytics MCP server for business metrics',
  version: '1.0.0',
  remotes: [{ type: 'sse', url: 'https://mcp.company.com/analytics' }],
}
const GITHUB = {
  name: 'io.github.stacklok/github-mcp',
  description: 'GitHub MCP server for repository operations',
  version: '1.0.0',
  remotes: [{ type: 'sse', url: 'https://mcp.company.com/github' }],
}

const ROUTED = { type: 'streamable-http', url: 'https://mcp.example.com/servers/my-mcp-server' }

describeCluster('examples of the design documents', () => {
  let operator: OperatorUnderTest
  let admin: KubeClient
  const made: { readonly manifest: Manifest }[] = []

  beforeAll(async () => {
    for (const namespace of [SERVERS, GATEWAYS, PRODUCTION]) await ensureNamespace(namespace)
    // Before the operator looks for it: an absent kind is looked for only now and then.
    if (gatewayApiProblem() === undefined) {
      const client = adminClient(sharedCluster())
      await installGatewayApi(client)
      await client.close()
    }
    operator = await startOperator(OPERATOR)
    ;({ admin } = operator)
  })
  afterAll(async () => {
    for (const { manifest } of made) {
      const { namespace = '', name } = manifest.metadata
      await admin.delete(typeOf(manifest), { namespace, name }).catch(() => {}) // gone already
    }
    for (const namespace of [SERVERS, PRODUCTION]) await admin.delete(mcpRegistryType, { namespace, name: 'company' }).catch(() => {}) // not made
    await operator?.stop()
  })

  const make = async (manifest: Manifest) => {
    made.push({ manifest })
    return await put(admin, manifest)
  }
  const registry = async (namespace: string, spec: MCPRegistry['spec']) =>
    await admin.apply(mcpRegistryType, { metadata: { namespace, name: 'company' }, spec } as MCPRegistry, {
      fieldManager: 'test',
      force: true,
    })
  const company = { namespace: SERVERS, name: 'company' }
  const production = { namespace: PRODUCTION, name: 'company' }
  const exported = async (of = company) => {
    const { 'registry.json': text = '{}' } = await exportedFiles(admin, of)
    return (JSON.parse(text).data?.servers ?? []) as ServedDocument[]
  }
  const one = (file: string): Manifest => {
    const [manifest] = seed(file)
    if (manifest === undefined) throw new Error(`${file} is empty`)
    return manifest
  }

  test('000: the internal server is a new entry, the known one gets a remote [000-012] [000-044] [000-056] [000-058]', async () => {
    const known = { ...GITHUB, remotes: undefined, packages: [image('ghcr.io/stacklok/mcp-github:v1.0.0')] }
    const data = { 'registry.json': JSON.stringify({ data: { servers: [known] } }) }
    await admin.apply(configMaps, { metadata: { namespace: SERVERS, name: 'known-servers' }, data }, { fieldManager: 'test', force: true })
    await make(one('000-mcpserver-internal-analytics.yaml'))
    await make(one('000-mcpserver-github.yaml'))
    const registries: MCPRegistry['spec']['registries'] = [{ name: 'known', format: 'upstream', configMapRef: { name: 'known-servers' } }]
    await registry(SERVERS, { registries, export: { mode: 'operator' } })
    await eventually('both entries', async () => {
      const names = (await exported()).map(({ name }) => name)
      return names.includes(ANALYTICS.name) && names.includes(GITHUB.name)
    })
    await using pod = await startRegistryPod(sharedCluster(), admin, {
      ...company,
      files: { 'registry/known/registry.json': data['registry.json'] },
    })
    await expectPrinted(pod, [ANALYTICS, GITHUB])

    // The server of the other mode reads the cluster itself, asks for the mark of document 001 too, and gives the same.
    const marked = { 'toolhive.stacklok.dev/registry-export': 'true' }
    for (const file of ['000-mcpserver-internal-analytics.yaml', '000-mcpserver-github.yaml']) {
      const manifest = one(file)
      await put(admin, { ...manifest, metadata: { ...manifest.metadata, annotations: { ...manifest.metadata.annotations, ...marked } } })
    }
    await registry(SERVERS, { registries, export: { mode: 'server' } })
    await eventually('the configuration of the other mode', async () => {
      const config = await admin.get(configMaps, { namespace: SERVERS, name: 'company-registry-server-config' })
      return config.data?.['config.yaml']?.includes('crossNamespaceGateway')
    })
    await using reader = await startRegistryPod(sharedCluster(), admin, {
      ...company,
      files: { 'registry/known/registry.json': data['registry.json'] },
    })
    await expectPrinted(reader, [ANALYTICS, GITHUB])
  })

  test('001: the annotated server is listed at its URL with its description [001-031] [001-032]', async () => {
    await make(one('001-mcpserver-annotated.yaml'))
    await registry(PRODUCTION, { registries: [{ name: 'published', managed: {} }], export: {} })
    await using pod = await startRegistryPod(sharedCluster(), admin, production)
    const name = 'dev.stacklok.toolhive/production.my-mcp-server'
    const servers = await pod.untilServers('the annotated server', (found) => name in found)
    const printed = { description: 'Production MCP server for code analysis', remotes: [ROUTED] }
    expect(servers[name]).toMatchObject(printed)
    await registry(PRODUCTION, { registries: [{ name: 'published', managed: {} }], export: { mode: 'operator' } })
    const entry = await eventually('the entry by the operator', async () => (await exported(production)).find((each) => each.name === name))
    expect(entry).toMatchObject(printed)
  })

  describe.skipIf(gatewayApiProblem() !== undefined)('with the Gateway API', () => {
    test('000: the route is exported with a ReferenceGrant of the Gateway, and not without [000-085] [000-086] [000-087]', async () => {
      const printed = one('000-mcpserver-github.yaml')
      const { 'toolhive.stacklok.dev/registry-description': description = '' } = printed.metadata.annotations ?? {}
      const annotations = { 'toolhive.stacklok.dev/registry-description': description }
      // Without the direct URL, which would win over the route, and of an image that no source lists.
      const server = await make({
        ...printed,
        metadata: { ...printed.metadata, annotations },
        spec: { ...printed.spec, image: 'registry.company.com/mcp/github:v1' },
      })
      // The document calls the Service of the proxy so.
      const service = proxyServiceOf(server, 'MCPServer', 'github-mcp-service')
      await make({ ...service, metadata: { ...service.metadata, labels: { toolhive: 'true' } } })
      await make({
        kind: 'Gateway',
        metadata: { name: 'external-gateway', namespace: GATEWAYS },
        spec: {
          gatewayClassName: 'example',
          listeners: [
            {
              name: 'https',
              port: 443,
              protocol: 'HTTPS',
              tls: { certificateRefs: [{ name: 'example' }] },
              allowedRoutes: { namespaces: { from: 'All' } },
            },
          ],
        },
        status: { addresses: [{ type: 'Hostname', value: 'mcp.company.com' }] },
      })
      const route = one('gateway/000-httproute.yaml')
      await make({ ...route, status: acceptedBy(route) })
      await registry(SERVERS, { registries: [{ name: 'published', managed: {} }], export: { mode: 'operator' } })
      await eventually('the reason on the registry', async () => {
        const { status } = await admin.get(mcpRegistryType, company)
        const condition = status?.conditions?.find(({ type }) => type === 'RegistryExport')
        if (!condition?.message.includes('ReferenceNotPermitted: HTTPRoute mcp-servers/github-mcp-external'))
          throw new Error(JSON.stringify(status?.conditions))
        return true
      })
      await eventually('the Event on the route', async () => {
        const { items } = await admin.list(events, { namespace: SERVERS })
        return items.some(({ regarding, reason }) => regarding?.name === 'github-mcp-external' && reason === 'ReferenceNotPermitted')
      })
      const name = 'dev.stacklok.toolhive/mcp-servers.github-mcp'
      const find = async () => (await exported()).find((entry) => entry.name === name)
      expect(await find()).toBeUndefined()
      const grant: Manifest = {
        kind: 'ReferenceGrant',
        metadata: { name: 'routes-of-servers', namespace: GATEWAYS },
        spec: {
          from: [{ group: 'gateway.networking.k8s.io', kind: 'HTTPRoute', namespace: SERVERS }],
          to: [{ group: 'gateway.networking.k8s.io', kind: 'Gateway' }],
        },
      }
      await make(grant)
      const entry = await eventually('the entry', find)
      expect(entry).toMatchObject({ description, remotes: GITHUB.remotes })
      await admin.delete(typeOf(grant), { namespace: GATEWAYS, name: grant.metadata.name })
      await eventually('no entry', async () => (await find()) === undefined)

      await make(grant)
      await eventually('the entry again', find)

      // The server of the other mode, with the same rule for Gateways of other namespaces.
      const spec: MCPRegistry['spec'] = {
        registries: [{ name: 'published', managed: {} }],
        export: { namespaces: [SERVERS, GATEWAYS], crossNamespaceGateway: 'referenceGrant' },
      }
      await admin.apply(mcpRegistryType, { metadata: { namespace: SERVERS, name: 'reader' }, spec } as MCPRegistry, {
        fieldManager: 'test',
        force: true,
      })
      const binding = { namespace: GATEWAYS, name: `${SERVERS}.reader.registry-export` }
      await eventually('the rights to read Gateways', () => admin.tryGet(roleBindings, binding))
      {
        await using reader = await startRegistryPod(sharedCluster(), admin, { namespace: SERVERS, name: 'reader' })
        const servers = await reader.untilServers('the routed server', (found) => name in found)
        expect(servers[name]).toMatchObject({ description, remotes: GITHUB.remotes })
        await admin.delete(typeOf(grant), { namespace: GATEWAYS, name: grant.metadata.name })
        await reader.untilServers('no routed server', (found) => !(name in found))
      }
      await admin.delete(mcpRegistryType, { namespace: SERVERS, name: 'reader' })
      await make(grant)
      await eventually('the entry of the operator', find)
    })

    test('001: the routed server is listed at the URL of its Gateway, in both modes', async () => {
      const printed = one('001-mcpserver-routed.yaml')
      const owner = await make(printed)
      await make(proxyServiceOf(owner, 'MCPServer', 'my-mcp-server'))
      await make(one('gateway/001-gateway.yaml'))
      const route = one('gateway/001-httproute.yaml')
      await make({ ...route, status: acceptedBy(route) })
      const registries: MCPRegistry['spec']['registries'] = [{ name: 'published', managed: {} }]
      const namespaces = [PRODUCTION, GATEWAYS]
      await registry(PRODUCTION, { registries, export: { namespaces } })
      const name = 'dev.stacklok.toolhive/production.my-mcp-server'
      await eventually('the configuration of mode server', async () => {
        const config = await admin.get(configMaps, { namespace: PRODUCTION, name: 'company-registry-server-config' })
        return config.data?.['config.yaml']?.includes('crossNamespaceGateway')
      })
      const binding = { namespace: GATEWAYS, name: `${PRODUCTION}.company.registry-export` }
      await eventually('the rights to read Gateways', () => admin.tryGet(roleBindings, binding))
      {
        await using pod = await startRegistryPod(sharedCluster(), admin, production)
        const servers = await pod.untilServers('the routed server', (found) => found[name]?.remotes !== undefined)
        expect(servers[name]).toMatchObject({ description: 'MCP server production/my-mcp-server', remotes: [ROUTED] })
      }
      // The operator asks for a description, and by default for a grant, of which document 001 has none.
      const annotations = { 'toolhive.stacklok.dev/registry-description': 'A routed server' }
      await make({ ...printed, metadata: { ...printed.metadata, annotations } })
      await registry(PRODUCTION, { registries, export: { mode: 'operator', namespaces, crossNamespaceGateway: 'accepted' } })
      const entry = await eventually('the entry by the operator', async () => {
        return (await exported(production)).find((each) => each.name === name && each.description === 'A routed server')
      })
      expect(entry.remotes).toEqual([ROUTED])
    })

    test('000: a route that is deleted while no operator runs leaves no entry behind [000-125]', async () => {
      const entries = async () => (await exported()).map(({ name }) => name)
      const name = 'dev.stacklok.toolhive/mcp-servers.github-mcp'
      expect(await entries()).toContain(name)
      await operator.stop()
      const client = adminClient(sharedCluster())
      const route = one('gateway/000-httproute.yaml')
      await client.delete(typeOf(route), { namespace: SERVERS, name: route.metadata.name })
      await client.close()
      operator = await startOperator(OPERATOR)
      ;({ admin } = operator)
      await eventually('no entry', async () => !(await entries()).includes(name))
    })
  })
})

/** Every member that a document prints, and no others but those that it leaves out everywhere. */
async function expectPrinted(pod: RegistryPod, printed: readonly { readonly name: string }[]): Promise<void> {
  const isThere = (found: Record<string, ServedDocument>) => printed.every(({ name }) => found[name]?.remotes !== undefined)
  const servers = await pod.untilServers('the servers', isThere)
  for (const each of printed) {
    const { $schema: _, packages: __, _meta: ___, ...members } = servers[each.name] as ServedDocument & { $schema?: string }
    expect(members).toEqual(each)
  }
}

function image(identifier: string) {
  return { registryType: 'oci', identifier, transport: { type: 'stdio' } }
}
