import type { VirtualMCPServer } from '@thv/resources/kinds/virtual-mcp-server/schema'
import { describe, expect, it, vi } from 'vitest'
import type { Env } from '../../environment.ts'
import { memoryCluster } from '../../testing/memory-cluster.ts'
import { reconcileVirtualMcpServer } from './reconcile.ts'

const key = { namespace: 'team', name: 'v' }
const OWNER = { apiVersion: 'toolhive.stacklok.dev/v1beta1', kind: 'VirtualMCPServer', name: 'v', uid: 'uid-v', controller: true }

/** Without its group it makes nothing, so that only the status is written. */
function lonely() {
  const cluster = memoryCluster()
  const spec = { groupRef: { name: 'gone' }, incomingAuth: { type: 'anonymous' } }
  const put = (status?: object) =>
    cluster.put({
      kind: 'VirtualMCPServer',
      metadata: { name: 'v', uid: 'uid-v', generation: 1 },
      spec,
      ...(status && { status }),
    } as never)
  const seal = Buffer.from(Buffer.alloc(32, 1).toString('base64')).toString('base64')
  cluster.put({ kind: 'Secret', metadata: { name: 'v-hmac-secret', ownerReferences: [OWNER] }, data: { 'hmac-secret': seal } } as never)
  put()
  const env = { ...cluster.env, children: { latest: () => undefined } as unknown as Env['children'] }
  return {
    cluster,
    put,
    status: () => cluster.object<VirtualMCPServer>('VirtualMCPServer', 'v')?.status,
    /** Retries wait on the clock. */
    async reconcile() {
      let isOver = false
      const running = reconcileVirtualMcpServer(key, env, { signal: new AbortController().signal, attempt: 1 }).finally(() => {
        isOver = true
      })
      await vi.waitFor(async () => {
        await cluster.clock.advance(100)
        expect(isOver).toBe(true)
      }, 60_000)
      await running
    },
  }
}

describe('reconcileVirtualMcpServer', () => {
  it('[002-174] tries a status write that meets a conflict again on the fresh object, and loses nothing that others wrote', async () => {
    const { cluster, put, reconcile, status } = lonely()
    const discoveredBackends = [{ name: 'a', status: 'ready' }]
    const conflicts = {
      type: 'ToolConflicts',
      status: 'False',
      reason: 'NoConflicts',
      message: 'none',
      lastTransitionTime: '2026-01-01T00:00:00Z',
    }
    const foreign = { ...conflicts, type: 'example.com/Reviewed', status: 'True', reason: 'ByHand' }
    cluster.meanwhile = () => {
      cluster.meanwhile = () => {}
      put({ discoveredBackends, backendCount: 1, conditions: [conflicts, foreign] })
    }
    await reconcile()
    const { conditions = [], ...rest } = status() ?? {}
    expect(rest).toMatchObject({ phase: 'Failed', discoveredBackends, backendCount: 1 })
    expect(conditions).toEqual(expect.arrayContaining([conflicts, foreign]))
    expect(conditions).toContainEqual(expect.objectContaining({ type: 'GroupRefValidated', reason: 'GroupRefNotFound' }))
    expect(cluster.writes).toEqual([{ plural: 'virtualmcpservers', name: 'v', subresource: 'status' }])
  })

  it('writes nothing where nothing changed', async () => {
    const { cluster, reconcile } = lonely()
    await reconcile()
    cluster.writes.length = 0
    await reconcile()
    expect(cluster.writes).toEqual([])
  })
})
