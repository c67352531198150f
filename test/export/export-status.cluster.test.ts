import { configMaps, deployments, events, type KubeClient, type KubeObject } from '@thv/kube'
import { type MCPRegistry, mcpRegistryType } from '@thv/resources/kinds/mcp-registry/schema'
import { mcpServerType } from '@thv/resources/kinds/mcp-server/schema'
import { virtualMcpServerType } from '@thv/resources/kinds/virtual-mcp-server/schema'
import { adminClient } from '@thv/resources/testing/install-crds'
import { describeCluster, sharedCluster } from '@thv/testkit/cluster/test-cluster'
import { gatewayApiProblem, installGatewayApi } from '@thv/testkit/gateway-api/gateway-api'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { eventually, type OperatorUnderTest, startOperator } from '../../apps/operator/src/testing/operator-harness.ts'
import { acceptedBy, type Manifest, put, typeOf } from '../../apps/registry/src/kubernetes/testing/cluster-world.ts'
import { exportedFiles, startRegistryPod } from './export-world.ts'

/* The outcome of an export: in the status of the MCPRegistry and of the resource, in Events on routes, and in the ConfigMap of mode operator. */

/** Short, for each step of these tests waits for one. */
const DEBOUNCE_MS = 100
const annotation = (name: string) => `toolhive.stacklok.dev/${name}`
const described = (url: string, description = 'A server') => ({
  [annotation('registry-url')]: url,
  [annotation('registry-description')]: description,
})
const optedIn = { [annotation('registry-export')]: 'true' }

describeCluster('the export of an MCPRegistry', () => {
  let operator: OperatorUnderTest
  let admin: KubeClient
  let namespace: string

  beforeAll(async () => {
    // Before the operator looks for it: an absent kind is looked for only now and then.
    if (gatewayApiProblem() === undefined) {
      const client = adminClient(sharedCluster())
      await installGatewayApi(client)
      await client.close()
    }
    operator = await startOperator({ exportDebounceMs: DEBOUNCE_MS })
    ;({ admin, namespace } = operator)
  })
  afterAll(async () => await operator?.stop())

  const key = (name: string) => ({ namespace, name })
  const server = (name: string, annotations: Record<string, string>, image = 'x.example/y:1'): Manifest => ({
    kind: 'MCPServer',
    metadata: { name, namespace, annotations },
    spec: { image, transport: 'sse' },
  })
  const entry = (name: string) => `dev.stacklok.toolhive/${namespace}.${name}`
  const registries: MCPRegistry['spec']['registries'] = [{ name: 'published', managed: {} }]
  const apply = async (name: string, spec: MCPRegistry['spec']) =>
    await admin.apply(mcpRegistryType, { metadata: key(name), spec } as MCPRegistry, { fieldManager: 'test', force: true })
  type Status = { conditions?: { type: string; status: string; reason: string; message: string }[]; exportedServers?: number }
  const condition = (object: KubeObject) =>
    (object as { status?: Status }).status?.conditions?.find(({ type }) => type === 'RegistryExport')
  const registry = (name: string, check: (found: MCPRegistry) => boolean) =>
    eventually(`the status of ${name}`, async () => {
      const found = await admin.get(mcpRegistryType, key(name))
      if (!check(found)) throw new Error(JSON.stringify(found.status))
      return found
    })
  const resource = (name: string, reason: string | undefined) =>
    eventually(`RegistryExport of ${name} is ${reason}`, async () => {
      const found = await admin.get(mcpServerType, key(name))
      if (condition(found)?.reason !== reason) throw new Error(JSON.stringify(found.status))
      return condition(found) ?? true
    })
  /** As the controller of Deployments tells it; there is none here. */
  const rollOut = async (name: string) => {
    const { metadata } = await admin.get(deployments, key(`${name}-api`))
    const status = { observedGeneration: metadata.generation, replicas: 1, updatedReplicas: 1, readyReplicas: 1, availableReplicas: 1 }
    await admin.patch(deployments, key(`${name}-api`), { kind: 'merge', body: { status } }, { subresource: 'status' })
  }
  const exported = (name: string, names: readonly string[]) =>
    eventually(`the servers ${names.join(', ')} in the ConfigMap of ${name}`, async () => {
      const { 'registry.json': text = '{}' } = await exportedFiles(admin, key(name))
      const list: { name: string; remotes: { url: string }[]; description: string }[] = JSON.parse(text).data?.servers ?? []
      if (JSON.stringify(list.map((each) => each.name).sort()) !== JSON.stringify([...names].sort())) throw new Error(text)
      return list
    })

  test('says on the resource and on the registry what is listed, and what is missing [001-076] [000-116]', async () => {
    await put(admin, server('asks', { ...optedIn, ...described('https://asks.example/') }))
    expect(await resource('asks', 'NoRegistry')).toMatchObject({ status: 'False', message: expect.stringContaining(namespace) })
    await put(admin, server('silent', {}))
    await apply('told', { registries, export: {} })
    expect(await resource('asks', 'Exported')).toMatchObject({ status: 'True', message: expect.stringContaining('https://asks.example/') })
    await registry('told', (found) => found.status?.exportedServers === 1 && condition(found)?.status === 'True')
    expect(condition(await admin.get(mcpServerType, key('silent')))).toBeUndefined()

    await put(admin, server('asks', { ...optedIn, ...described('javascript:alert(1)') }))
    expect(await resource('asks', 'InvalidRegistryURL')).toMatchObject({ status: 'False' })
    const wrong = await registry('told', (found) => condition(found)?.reason === 'InvalidRegistryURL')
    expect(wrong.status?.exportedServers).toBe(0)
    expect(condition(wrong)?.message).toContain(`MCPServer ${namespace}/asks`)

    await put(admin, server('asks', {}))
    await resource('asks', undefined)
    await registry('told', (found) => condition(found)?.reason === 'Exported' && found.status?.exportedServers === 0)
    await admin.delete(mcpRegistryType, key('told'))
  })

  test('says it on a VirtualMCPServer too', async () => {
    const door = (annotations: Record<string, string>): Manifest => ({
      kind: 'VirtualMCPServer',
      metadata: { name: 'door', namespace, annotations },
      spec: { groupRef: { name: 'none-yet' }, incomingAuth: { type: 'anonymous' } },
    })
    const says = (reason: string | undefined) =>
      eventually(`RegistryExport of door is ${reason}`, async () => {
        const found = await admin.get(virtualMcpServerType, key('door'))
        if (condition(found)?.reason !== reason) throw new Error(JSON.stringify(found.status))
        return condition(found) ?? true
      })
    await put(admin, door({ ...optedIn, ...described('https://door.example/mcp') }))
    await says('NoRegistry')
    await apply('doors', { registries, export: {} })
    expect(await says('Exported')).toMatchObject({ status: 'True', message: expect.stringContaining('https://door.example/mcp') })
    await put(admin, door({ ...optedIn, ...described('not a URL') }))
    expect(await says('InvalidRegistryURL')).toMatchObject({ status: 'False' })
    await put(admin, door({}))
    await says(undefined)
    await admin.delete(virtualMcpServerType, key('door'))
    await admin.delete(mcpRegistryType, key('doors'))
  })

  test('mode operator writes a ConfigMap from URL and description alone, and nothing when nothing changed [000-011] [000-041] [000-043] [000-044] [000-046] [000-047] [000-074] [000-077] [000-117]', async () => {
    const more = { [annotation('registry-tier')]: 'Official', [annotation('tools')]: '["a"]' }
    await put(admin, server('first', { ...described('https://first.example/'), ...more }))
    await put(admin, server('second', described('https://second.example/')))
    await put(admin, server('nameless', { [annotation('registry-url')]: 'https://nameless.example/' }))
    await apply('written', { registries, export: { mode: 'operator' } })
    const servers = await exported('written', [entry('first'), entry('second')])
    expect(servers[0]).toMatchObject({
      description: 'A server',
      version: '1.0.0',
      remotes: [{ type: 'sse', url: 'https://first.example/' }],
    })
    expect(JSON.stringify(servers)).not.toMatch(/"tier"|"tools"|"tags"/)
    expect(await resource('nameless', 'MissingDescription')).toMatchObject({ message: expect.stringContaining('registry-description') })
    const told = await registry('written', (found) => found.status?.exportedServers === 2)
    expect(condition(told)).toMatchObject({ status: 'True', message: expect.stringContaining('MissingDescription') })

    for (const each of ['first', 'second']) await resource(each, 'Exported')
    operator.calls.clear()
    await put(admin, server('second', { ...described('https://second.example/'), unrelated: 'x' }))
    await put(admin, server('first', described('https://moved.example/')))
    await eventually('the new URL', async () => {
      const { 'registry.json': text = '' } = await exportedFiles(admin, key('written'))
      return text.includes('https://moved.example/')
    })
    await eventually('the new URL on the resource', async () =>
      condition(await admin.get(mcpServerType, key('first')))?.message.includes('https://moved.example/'),
    )
    // One shard, and the status of the one resource; a change of no URL writes nothing.
    const written = operator.calls.writes.filter(({ plural }) => plural === 'configmaps' || plural === 'mcpservers')
    expect(written.map(({ plural, name, subresource = '' }) => `${plural} ${name} ${subresource}`).sort()).toEqual([
      'configmaps written-registry-export ',
      'mcpservers first status',
    ])
    await put(admin, server('second', {}))
    await exported('written', [entry('first')])
  })

  test('looks images up in the data of the registry, and keeps its description [000-063]', async () => {
    const known = {
      name: 'io.github.stacklok/known',
      description: 'From the source',
      version: '1.2.3',
      packages: [{ registryType: 'oci', identifier: 'ghcr.io/x/known:1', transport: { type: 'stdio' } }],
    }
    await admin.apply(
      configMaps,
      { metadata: key('core'), data: { 'registry.json': JSON.stringify({ data: { servers: [known] } }) } },
      { fieldManager: 'test', force: true },
    )
    await put(admin, server('runs-known', described('https://known.example/', 'Another text'), 'ghcr.io/x/known:1'))
    await apply('copies', {
      registries: [{ name: 'core', format: 'upstream', configMapRef: { name: 'core' } }],
      export: { mode: 'operator' },
    })
    const list = await eventually('the copy', async () => {
      const { 'registry.json': text = '{}' } = await exportedFiles(admin, key('copies'))
      const found: { name: string }[] = JSON.parse(text).data?.servers ?? []
      return found.some(({ name }) => name === known.name) && found
    })
    expect(list.find(({ name }) => name === known.name)).toMatchObject({
      ...known,
      remotes: [{ type: 'sse', url: 'https://known.example/' }],
    })
    await admin.delete(mcpRegistryType, key('copies'))
    await admin.delete(typeOf(server('runs-known', {})), key('runs-known'))
  })

  test('feeds the registry by exactly one mode, before and after a switch [001-002]', async () => {
    await put(admin, server('stays', { ...optedIn, ...described('https://stays.example/') }))
    await apply('switched', { registries, export: { mode: 'operator' } })
    // The pod gets the files that are there when it starts.
    await eventually('the server in the ConfigMap', async () => {
      const { 'registry.json': text = '' } = await exportedFiles(admin, key('switched'))
      return text.includes(`"${entry('stays')}"`)
    })
    {
      await using pod = await startRegistryPod(sharedCluster(), admin, key('switched'))
      await pod.untilServers('the server by the operator', (found) => entry('stays') in found)
    }
    await apply('switched', { registries, export: { mode: 'server' } })
    await eventually('the configuration of the other mode', async () => {
      const { data } = await admin.get(configMaps, key('switched-registry-server-config'))
      return data?.['config.yaml']?.match(/name: cluster$/gm)?.length === 1 && data['config.yaml'].includes('crossNamespaceGateway')
    })
    // Pods of the other mode serve from it as long as there are some.
    expect(Object.keys(await exportedFiles(admin, key('switched')))).toHaveLength(1)
    await eventually('no ConfigMap', async () => {
      await rollOut('switched') // each time: the Deployment is written after the configuration
      return Object.keys(await exportedFiles(admin, key('switched'))).length === 0
    })
    await using pod = await startRegistryPod(sharedCluster(), admin, key('switched'))
    await pod.untilServers('the server by the registry', (found) => entry('stays') in found)
  })

  describe.skipIf(gatewayApiProblem() !== undefined)('through routes', () => {
    const gateway = (address: string | undefined): Manifest => ({
      kind: 'Gateway',
      metadata: { name: 'edge', namespace },
      spec: { gatewayClassName: 'x', listeners: [{ name: 'http', port: 80, protocol: 'HTTP' }] },
      status: { addresses: address === undefined ? [] : [{ type: 'Hostname', value: address }] },
    })
    const route = (name: string, backend: string, annotations: Record<string, string> = optedIn): Manifest => ({
      kind: 'HTTPRoute',
      metadata: { name, namespace, annotations },
      spec: {
        parentRefs: [{ name: 'edge' }],
        rules: [{ matches: [{ path: { type: 'PathPrefix', value: `/${name}` } }], backendRefs: [{ name: backend, port: 8080 }] }],
      },
    })

    test('follows routes, Gateways and addresses; tells who waits, and says so on the route [000-003] [000-005] [000-023] [000-073] [000-084] [000-089] [000-107] [000-114] [000-115] [000-123] [000-134] [001-076]', async () => {
      await put(admin, server('routed', { [annotation('registry-description')]: 'A routed server' }))
      await put(admin, gateway(undefined))
      await apply('routes', { registries, export: { mode: 'operator' } })
      const shown = route('shown', 'mcp-routed-proxy')
      await put(admin, shown)
      const event = await eventually('the Event on the route', async () => {
        const { items } = await admin.list(events, { namespace })
        return items.find(({ regarding, reason }) => regarding?.kind === 'HTTPRoute' && reason === 'RouteNotAccepted')
      })
      expect(event).toMatchObject({ type: 'Warning', regarding: { name: 'shown' } })
      await put(admin, { ...shown, status: acceptedBy(shown) })
      const waiting = await registry('routes', (found) => condition(found)?.reason === 'WaitingForGatewayAddress')
      expect(condition(waiting)?.status).toBe('False')

      await put(admin, gateway('edge.example'))
      const urls = (wanted: string | undefined) =>
        eventually(`the URL ${wanted}`, async () => {
          const { 'registry.json': text = '{}' } = await exportedFiles(admin, key('routes'))
          const list: { name: string; remotes: { url: string }[] }[] = JSON.parse(text).data?.servers ?? []
          const found = list.find(({ name }) => name === entry('routed'))?.remotes.map(({ url }) => url)
          if (found?.join() !== wanted) throw new Error(text)
          return true
        })
      await urls('http://edge.example/shown')
      expect(await resource('routed', 'Exported')).toMatchObject({ message: expect.stringContaining('http://edge.example/shown') })

      const plain = route('plain', 'mcp-routed-proxy', {})
      await put(admin, { ...plain, status: acceptedBy(plain) })
      await put(admin, gateway('other.example'))
      await urls('http://other.example/shown')

      await put(admin, server('routed', described('https://direct.example/')))
      await urls('https://direct.example/')
      const conflict = await registry('routes', (found) => condition(found)?.reason === 'ConflictingConfiguration')
      expect(condition(conflict)?.status).toBe('True')
      await put(admin, server('routed', { [annotation('registry-description')]: 'A routed server' }))
      await urls('http://other.example/shown')
      await put(admin, route('shown', 'mcp-routed-proxy', {}))
      await urls(undefined)
      const left = await admin.get(typeOf(shown), key('shown'))
      expect((left as Manifest).spec).toMatchObject({ parentRefs: [{ name: 'edge' }] })
    })
  })
})
