import { configMaps, deployments, events, getCondition, type KubeClient, type ResourceType } from '@thv/kube'
import { mcpRemoteProxyType } from '@thv/resources/kinds/mcp-remote-proxy/schema'
import { mcpServerType } from '@thv/resources/kinds/mcp-server/schema'
import { MCP_TOOL_CONFIG_FINALIZER } from '@thv/resources/kinds/mcp-tool-config/constants'
import { type MCPToolConfig, mcpToolConfigType } from '@thv/resources/kinds/mcp-tool-config/schema'
import { virtualMcpServerType } from '@thv/resources/kinds/virtual-mcp-server/schema'
import { describeCluster } from '@thv/testkit/cluster/test-cluster'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { eventually, type OperatorUnderTest, startOperator } from '../../testing/operator-harness.ts'
import { standstill } from '../../testing/standstill.ts'

const type = mcpToolConfigType as ResourceType<MCPToolConfig>

describeCluster('MCPToolConfig', () => {
  let operator: OperatorUnderTest
  let admin: KubeClient
  let namespace: string

  beforeAll(async () => {
    operator = await startOperator()
    ;({ admin, namespace } = operator)
  })
  afterAll(async () => await operator?.stop())

  const at = (name: string) => ({ namespace, name })
  const create = (name: string, spec: NonNullable<MCPToolConfig['spec']>) => admin.create(type, { metadata: at(name), spec })
  const createServer = (name: string, toolConfig: string) =>
    admin.create(mcpServerType, { metadata: at(name), spec: { image: 'example.test/server:1', toolConfigRef: { name: toolConfig } } })
  const refer = (name: string, toolConfig: string | null) =>
    admin.patch(mcpServerType, at(name), { kind: 'merge', body: { spec: { toolConfigRef: toolConfig && { name: toolConfig } } } })
  const users = async (name: string, expected: string[]) =>
    await eventually(`${name} is used by ${expected}`, async () => {
      const { status } = await admin.get(type, at(name))
      const found = status?.referencingWorkloads?.map((workload) => `${workload.kind} ${workload.name}`)
      return JSON.stringify(found) === JSON.stringify(expected) && status
    })
  const condition = async (name: string, which: string) =>
    getCondition((await admin.get(type, at(name))).status?.conditions as never, which)

  test('[002-089] follows who refers to it: by creation, by edit, by deletion, for every kind that can', async () => {
    await create('shared', { toolsFilter: ['fetch'] })
    const status = await users('shared', [])
    expect(status).toMatchObject({ observedGeneration: 1, configHash: expect.any(String) })
    expect((await admin.get(type, at('shared'))).metadata.finalizers).toEqual([MCP_TOOL_CONFIG_FINALIZER])

    await createServer('one', 'shared')
    await createServer('two', 'other')
    await users('shared', ['MCPServer one'])
    await refer('two', 'shared')
    await users('shared', ['MCPServer one', 'MCPServer two'])
    await admin.create(mcpRemoteProxyType, {
      metadata: at('remote'),
      spec: { remoteUrl: 'https://mcp.example.com/mcp', toolConfigRef: { name: 'shared' } },
    } as never)
    await admin.create(virtualMcpServerType, {
      metadata: at('joined'),
      spec: {
        groupRef: { name: 'g' },
        incomingAuth: { type: 'anonymous' },
        config: { aggregation: { tools: [{ workload: 'one', toolConfigRef: { name: 'shared' } }] } },
      },
    } as never)
    await users('shared', ['MCPRemoteProxy remote', 'MCPServer one', 'MCPServer two', 'VirtualMCPServer joined'])
    await refer('two', null)
    await admin.delete(mcpServerType, at('one'))
    await admin.delete(virtualMcpServerType, at('joined'))
    await users('shared', ['MCPRemoteProxy remote'])
    await admin.delete(mcpRemoteProxyType, at('remote'))
    await users('shared', [])
  })

  test('holds its deletion while it is used, says who holds it, and goes with the last one', async () => {
    await create('held', { toolsFilter: ['fetch'] })
    await createServer('holder', 'held')
    await users('held', ['MCPServer holder'])
    await admin.delete(type, at('held'))
    const blocked = await eventually('the deletion is blocked', () => condition('held', 'DeletionBlocked'))
    expect(blocked).toMatchObject({ status: 'True', reason: 'ReferencedByWorkloads', message: expect.stringContaining('MCPServer holder') })
    const event = await eventually('the event', async () =>
      (await admin.list(events, { namespace })).items.find(({ reason }) => reason === 'ReferencedByWorkloads'),
    )
    expect(event).toMatchObject({
      type: 'Warning',
      regarding: { kind: 'MCPToolConfig', name: 'held' },
      note: expect.stringContaining('MCPServer holder'),
    })

    // Below the 30 s after which it would look again by itself.
    await refer('holder', null)
    await eventually('it is gone', async () => (await admin.tryGet(type, at('held'))) === undefined, 25_000)
  })

  test('[002-085] says in a condition that a filter entry matches only an original name', async () => {
    await create('originals', { toolsFilter: ['fetch'], toolsOverride: { fetch: { name: 'fetch_page' } } })
    const valid = await eventually('it is judged', () => condition('originals', 'Valid'))
    expect(valid).toMatchObject({ status: 'True', reason: 'ValidationSucceeded', message: expect.stringContaining('write fetch_page') })
  })

  test('says what is wrong, and when it is mended; what is wrong can be deleted', async () => {
    await create('wrong', { toolsOverride: { a: { name: 'x' }, b: { name: 'x' } } })
    const invalid = await eventually('it is judged', () => condition('wrong', 'Valid'))
    expect(invalid).toMatchObject({ status: 'False', reason: 'ValidationFailed', message: expect.stringContaining('a and b') })
    await admin.patch(type, at('wrong'), { kind: 'merge', body: { spec: { toolsOverride: { b: { name: 'y' } } } } })
    await eventually('it is valid', async () => (await condition('wrong', 'Valid'))?.status === 'True')
    await admin.patch(type, at('wrong'), { kind: 'merge', body: { spec: { toolsOverride: { b: { name: 'x' } } } } })
    await eventually('it is invalid again', async () => (await condition('wrong', 'Valid'))?.status === 'False')
    await admin.delete(type, at('wrong'))
    await eventually('it is gone', async () => (await admin.tryGet(type, at('wrong'))) === undefined)
  })

  test('[002-048] [002-054] a workload that names a missing one reports it and does not run', async () => {
    await createServer('unfiltered', 'missing')
    await admin.create(mcpRemoteProxyType, {
      metadata: at('unfiltered-remote'),
      spec: { remoteUrl: 'https://mcp.example.com/mcp', toolConfigRef: { name: 'missing' } },
    } as never)
    for (const [kind, name] of [[mcpServerType, 'unfiltered'] as const, [mcpRemoteProxyType, 'unfiltered-remote'] as const]) {
      const told = await eventually(`${name} reports it`, async () =>
        getCondition((await admin.get(kind as typeof mcpServerType, at(name))).status?.conditions as never, 'ToolConfigValidated'),
      )
      expect(told).toMatchObject({ status: 'False', reason: 'ToolConfigNotFound' })
      expect(await admin.tryGet(deployments, at(name))).toBeUndefined()
    }
  })

  test('[002-087] filter and overrides reach the RunConfig, and a change of them does', async () => {
    await create('filter', { toolsFilter: ['page'], toolsOverride: { fetch: { name: 'page', annotations: { readOnlyHint: true } } } })
    await createServer('filtered', 'filter')
    const runConfig = async () => JSON.parse((await admin.tryGet(configMaps, at('filtered-runconfig')))?.data?.['runconfig.json'] ?? '{}')
    await eventually('the filter is there', async () => (await runConfig()).tools_filter?.[0] === 'page')
    expect(await runConfig()).toMatchObject({ tools_override: { fetch: { name: 'page', annotations: { readOnlyHint: true } } } })
    await admin.patch(type, at('filter'), { kind: 'merge', body: { spec: { toolsFilter: ['page', 'search'] } } })
    await eventually('the change is there', async () => (await runConfig()).tools_filter?.length === 2)
    // Two controllers write these, in any order.
    await eventually('the server has its hash', async () => {
      const { metadata, status } = await admin.get(type, at('filter'))
      const { status: server } = await admin.get(mcpServerType, at('filtered'))
      return status?.observedGeneration === metadata.generation && server?.toolConfigHash === status?.configHash
    })
  })

  test('writes twice for a new one, and makes nothing', async () => {
    operator.calls.clear()
    await create('counted', { toolsFilter: ['fetch'] })
    await users('counted', [])
    await standstill({ ...operator, namespaces: [namespace] })
    const writes = operator.calls.writes.filter(({ name }) => name.startsWith('counted'))
    expect(writes).toEqual([
      { verb: 'patch', plural: 'mcptoolconfigs', name: 'counted' },
      { verb: 'patch', plural: 'mcptoolconfigs', name: 'counted', subresource: 'status' },
    ])
  })
})
