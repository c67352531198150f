import { done, getCondition, requeueAfter } from '@thv/kube'
import { MCP_TOOL_CONFIG_FINALIZER, MCPToolConfigCondition, MCPToolConfigReason } from '@thv/resources/kinds/mcp-tool-config/constants'
import type { MCPToolConfig } from '@thv/resources/kinds/mcp-tool-config/schema'
import { describe, expect, it } from 'vitest'
import { type MemoryCluster, memoryCluster } from '../../testing/memory-cluster.ts'
import { DELETION_BLOCKED, REFERENCED_BY_WORKLOADS } from '../config-object/status.ts'
import { reconcileMcpToolConfig } from './reconcile.ts'

const key = { namespace: 'team', name: 'tools' }
const config = (spec: MCPToolConfig['spec'] = { toolsFilter: ['a'] }) => ({ kind: 'MCPToolConfig', metadata: { name: 'tools' }, spec })
const server = (name: string, toolConfig = 'tools') => ({
  kind: 'MCPServer',
  metadata: { name },
  spec: { image: 'i', toolConfigRef: { name: toolConfig } },
})

async function reconcile(cluster: MemoryCluster) {
  const outcome = await reconcileMcpToolConfig(key, cluster.env, { signal: new AbortController().signal, attempt: 1 })
  const object = cluster.object<MCPToolConfig>('MCPToolConfig', 'tools')
  return { outcome, object, status: object?.status, condition: (type: string) => getCondition(object?.status?.conditions as never, type) }
}

function markDeleted(cluster: MemoryCluster): void {
  const object = cluster.object<MCPToolConfig & { kind: string }>('MCPToolConfig', 'tools')
  if (object) cluster.put({ ...object, metadata: { ...object.metadata, deletionTimestamp: '2026-03-01T10:00:00Z' } })
}

describe('reconcileMcpToolConfig', () => {
  it('adds the finalizer and writes one status', async () => {
    const cluster = memoryCluster()
    cluster.put(config())
    cluster.put(server('b'))
    cluster.put(server('a'))
    cluster.put(server('elsewhere', 'other'))
    cluster.put({
      kind: 'VirtualMCPServer',
      metadata: { name: 'joined' },
      spec: {
        groupRef: { name: 'g' },
        incomingAuth: { type: 'anonymous' },
        config: { aggregation: { tools: [{ workload: 'a', toolConfigRef: { name: 'tools' } }] } },
      },
    } as never)
    cluster.put({
      kind: 'MCPRemoteProxy',
      metadata: { name: 'remote' },
      spec: { remoteUrl: 'https://mcp.example.com', toolConfigRef: { name: 'tools' } },
    } as never)
    const { outcome, object, status, condition } = await reconcile(cluster)
    expect(outcome).toEqual(done)
    expect(object?.metadata.finalizers).toEqual([MCP_TOOL_CONFIG_FINALIZER])
    expect(status).toMatchObject({
      observedGeneration: 1,
      configHash: expect.stringMatching(/^[0-9a-f]{8,}$/),
      referencingWorkloads: [
        { kind: 'MCPRemoteProxy', name: 'remote' },
        { kind: 'MCPServer', name: 'a' },
        { kind: 'MCPServer', name: 'b' },
        { kind: 'VirtualMCPServer', name: 'joined' },
      ],
    })
    expect(condition('Valid')).toMatchObject({ status: 'True', reason: 'ValidationSucceeded', observedGeneration: 1 })
    expect(cluster.writes).toEqual([
      { plural: 'mcptoolconfigs', name: 'tools', subresource: undefined },
      { plural: 'mcptoolconfigs', name: 'tools', subresource: 'status' },
    ])
    expect(cluster.events).toEqual([])
  })

  it('writes nothing when nothing changed', async () => {
    const cluster = memoryCluster()
    cluster.put(config())
    await reconcile(cluster)
    cluster.writes.length = 0
    await cluster.clock.advance(60_000)
    await reconcile(cluster)
    expect(cluster.writes).toEqual([])
  })

  it('shows a warning in a message of a valid configuration', async () => {
    const cluster = memoryCluster()
    cluster.put(config({ toolsFilter: ['fetch'], toolsOverride: { fetch: { name: 'page' } } }))
    const { condition } = await reconcile(cluster)
    expect(condition('Valid')).toMatchObject({ status: 'True', message: expect.stringContaining('write page') })
  })

  it('says what is wrong, once as an event, and when it is mended', async () => {
    const cluster = memoryCluster()
    cluster.put(config({ toolsOverride: { a: { name: 'x' }, b: { name: 'x' } } }))
    const first = await reconcile(cluster)
    const before = first.status?.configHash
    expect(first.condition('Valid')).toMatchObject({ status: 'False', reason: 'ValidationFailed' })
    await reconcile(cluster)
    expect(cluster.events).toMatchObject([{ type: 'Warning', reason: 'ValidationFailed', note: expect.stringContaining('a and b') }])

    cluster.put(config({ toolsOverride: { a: { name: 'x' }, b: { name: 'y' } } }))
    const { condition, status } = await reconcile(cluster)
    expect(condition('Valid')).toMatchObject({ status: 'True', observedGeneration: 2 })
    expect(status).toMatchObject({ observedGeneration: 2 })
    expect(status?.configHash).not.toBe(before)
    expect(cluster.events.at(-1)).toMatchObject({ type: 'Normal', reason: 'ValidationSucceeded' })
  })

  it('holds its deletion while somebody uses it, says who, and lets go with the last one', async () => {
    const cluster = memoryCluster()
    cluster.put(config())
    cluster.put(server('a'))
    cluster.put(server('b'))
    await reconcile(cluster)
    markDeleted(cluster)
    const held = await reconcile(cluster)
    expect(held.outcome).toEqual(requeueAfter('30s'))
    expect(held.condition('DeletionBlocked')).toMatchObject({
      status: 'True',
      reason: 'ReferencedByWorkloads',
      message: expect.stringContaining('MCPServer a and MCPServer b'),
    })
    expect(cluster.events).toMatchObject([
      { type: 'Warning', reason: 'ReferencedByWorkloads', note: expect.stringContaining('MCPServer a') },
    ])
    await reconcile(cluster)
    expect(cluster.events).toHaveLength(1)

    cluster.put(server('a', 'other'))
    cluster.remove('MCPServer', 'b')
    const { outcome, object } = await reconcile(cluster)
    expect(outcome).toEqual(done)
    expect(object).toBeUndefined()
  })

  it('lets an invalid configuration go, and one that was deleted before the operator saw it', async () => {
    const cluster = memoryCluster()
    cluster.put(config({ toolsOverride: { a: {} } }))
    await reconcile(cluster)
    markDeleted(cluster)
    await reconcile(cluster)
    expect(cluster.object('MCPToolConfig', 'tools')).toBeUndefined()

    const other = { ...config(), metadata: { name: 'tools', deletionTimestamp: '2026-03-01T10:00:00Z', finalizers: ['example.com/keep'] } }
    cluster.put(other)
    cluster.put(server('a'))
    cluster.writes.length = 0
    expect((await reconcile(cluster)).outcome).toEqual(done)
    expect(cluster.writes).toEqual([])
  })

  it('leaves finalizers of others alone', async () => {
    const cluster = memoryCluster()
    cluster.put({ ...config(), metadata: { name: 'tools', finalizers: ['example.com/keep'] } } as never)
    await reconcile(cluster)
    expect(cluster.object('MCPToolConfig', 'tools')?.metadata.finalizers).toEqual(['example.com/keep', MCP_TOOL_CONFIG_FINALIZER])
    markDeleted(cluster)
    await reconcile(cluster)
    expect(cluster.object('MCPToolConfig', 'tools')?.metadata.finalizers).toEqual(['example.com/keep'])
  })

  it('judges the newer spec when somebody edits it meanwhile', async () => {
    const cluster = memoryCluster()
    cluster.put(config())
    await reconcile(cluster)
    cluster.put(config({ toolsFilter: ['b'] }))
    let edited = false
    cluster.meanwhile = () => {
      if (edited) return
      edited = true
      cluster.put(config({ toolsOverride: { a: {} } }))
    }
    const running = reconcile(cluster)
    for (let n = 0; n < 5; n++) await cluster.clock.advance(1_000)
    const { status, condition } = await running
    expect(status?.observedGeneration).toBe(3)
    expect(condition('Valid')).toMatchObject({ status: 'False', observedGeneration: 3 })
  })

  it('does nothing for an object that is gone', async () => {
    const cluster = memoryCluster()
    expect((await reconcile(cluster)).outcome).toEqual(done)
    expect(cluster.writes).toEqual([])
  })

  it('uses the words of its kind for what both kinds share', () => {
    expect(MCPToolConfigCondition.DeletionBlocked).toBe(DELETION_BLOCKED)
    expect(MCPToolConfigReason.ReferencedByWorkloads).toBe(REFERENCED_BY_WORKLOADS)
  })
})
