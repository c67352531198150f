import { KubeApiError } from '@thv/kube'
import type { MCPGroup } from '@thv/resources/kinds/mcp-group/schema'
import { describe, expect, it } from 'vitest'
import type { OperatorCaches } from '../../caches/operator-caches.ts'
import { type MemoryCluster, memoryCluster } from '../../testing/memory-cluster.ts'
import { reconcileMcpGroup } from './reconcile.ts'

const key = { namespace: 'team', name: 'tools' }
const context = { signal: new AbortController().signal } as Parameters<typeof reconcileMcpGroup>[2]
const groupRef = { name: 'tools' }

describe('MCPGroup', () => {
  it('[004-124] a third kind of members leaves what the status said before as it was', async () => {
    const cluster = withGroup()
    cluster.put({ kind: 'MCPServer', metadata: { name: 'b' }, spec: { groupRef } } as never)
    cluster.put({ kind: 'MCPServer', metadata: { name: 'a' }, spec: { groupRef } } as never)
    cluster.put({ kind: 'MCPRemoteProxy', metadata: { name: 'proxy' }, spec: { groupRef } } as never)
    const before = await statusOf(cluster)
    expect(before).toMatchObject({ servers: ['a', 'b'], serverCount: 2, remoteProxies: ['proxy'], remoteProxyCount: 1, phase: 'Ready' })

    cluster.put({ kind: 'MCPServerEntry', metadata: { name: 'entry' }, spec: { groupRef } } as never)
    const { servers, remoteProxies, remoteProxyCount, phase, serverEntries, serverEntryCount } = await statusOf(cluster)
    expect({ servers, remoteProxies, remoteProxyCount, phase }).toEqual({
      servers: before.servers,
      remoteProxies: before.remoteProxies,
      remoteProxyCount: before.remoteProxyCount,
      phase: before.phase,
    })
    expect({ serverEntries, serverEntryCount }).toEqual({ serverEntries: ['entry'], serverEntryCount: 1 })
  })

  it('[002-120] says nothing before its members were listed, Failed while they cannot be, and Ready again afterwards', async () => {
    const cluster = withGroup()
    cluster.put({ kind: 'MCPServer', metadata: { name: 'a' }, spec: { groupRef } } as never)
    cluster.unlisted.set('mcpservers', { state: 'pending' })
    await reconcileMcpGroup(key, cluster.env, context)
    expect(cluster.writes).toEqual([])

    cluster.unlisted.delete('mcpservers')
    expect(await statusOf(cluster)).toMatchObject({ phase: 'Ready', servers: ['a'] })

    const body = { reason: 'Forbidden', message: 'mcpserverentries is forbidden' }
    const error = new KubeApiError({ call: { verb: 'list', target: 'mcpserverentries' }, status: 403, body })
    cluster.unlisted.set('mcpserverentries', { state: 'rejected', error })
    const failed = await statusOf(cluster)
    expect(failed).toMatchObject({ phase: 'Failed', servers: ['a'], serverCount: 1 })
    expect(failed.conditions).toMatchObject([
      {
        ...{ type: 'MCPServersChecked', status: 'False', reason: 'ListMCPServersCheckFailed' },
        message: expect.stringMatching(/^objects of kind MCPServerEntry cannot be listed: .*mcpserverentries is forbidden/),
      },
    ])

    cluster.unlisted.clear()
    expect(await statusOf(cluster)).toMatchObject({ phase: 'Ready', servers: ['a'] })
  })

  it('[004-106] finds its entries in the index on groupRef and lists no kind', async () => {
    const cluster = withGroup()
    for (let n = 0; n < 50; n++)
      cluster.put({ kind: 'MCPServerEntry', metadata: { name: `other-${n}` }, spec: { groupRef: { name: `other-${n % 5}` } } } as never)
    cluster.put({ kind: 'MCPServerEntry', metadata: { name: 'mine' }, spec: { groupRef } } as never)
    const asked: string[] = []
    const read: string[] = []
    const { caches } = cluster.env
    const indexed: OperatorCaches = {
      ...caches,
      of: (spec) => ({
        ...caches.of(spec),
        list: () => {
          throw new Error(`all ${spec.type.plural} were listed`)
        },
      }),
      referring: (to) =>
        caches.referring(to).map((kind) => ({
          ...kind,
          objects: (group) => {
            asked.push(`${kind.kind} of ${to} ${group}`)
            const found = kind.objects(group)
            read.push(...found.map(({ metadata }) => metadata.name))
            return found
          },
        })),
    }
    await reconcileMcpGroup(key, { ...cluster.env, caches: indexed }, context)
    expect(asked).toContain('MCPServerEntry of groups team/tools')
    expect(read).toEqual(['mine'])
    expect(cluster.object<MCPGroup>('MCPGroup', 'tools')?.status?.serverEntries).toEqual(['mine'])
  })
})

function withGroup(): MemoryCluster {
  const cluster = memoryCluster()
  cluster.put({ kind: 'MCPGroup', metadata: { name: 'tools' }, spec: {} } as never)
  return cluster
}

async function statusOf(cluster: MemoryCluster): Promise<NonNullable<MCPGroup['status']>> {
  await reconcileMcpGroup(key, cluster.env, context)
  return cluster.object<MCPGroup>('MCPGroup', 'tools')?.status ?? expect.fail('no status')
}
