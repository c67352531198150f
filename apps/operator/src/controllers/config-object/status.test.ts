import { MCPExternalAuthConfigCondition, MCPExternalAuthConfigReason } from '@thv/resources/kinds/mcp-external-auth-config/constants'
import { describe, expect, it } from 'vitest'
import { configObjectStatus, DELETION_BLOCKED, REFERENCED_BY_WORKLOADS } from './status.ts'

const deleting = { metadata: { name: 'c', generation: 3, deletionTimestamp: '2026-03-01T10:00:00Z' } }
const facts = { configHash: 'h', conditions: [], now: 0 }
const workloads = (count: number) => Array.from({ length: count }, (_, index) => ({ kind: 'MCPServer', name: `s${index}` }) as const)

describe('configObjectStatus', () => {
  it('uses the words of MCPExternalAuthConfig too', () => {
    expect(MCPExternalAuthConfigCondition.DeletionBlocked).toBe(DELETION_BLOCKED)
    expect(MCPExternalAuthConfigReason.ReferencedByWorkloads).toBe(REFERENCED_BY_WORKLOADS)
  })

  it.each([
    [1, 'deletion waits for MCPServer s0: remove the reference there, or delete it'],
    [2, 'deletion waits for MCPServer s0 and MCPServer s1: remove the reference there, or delete them'],
    [3, 'deletion waits for MCPServer s0, MCPServer s1 and MCPServer s2: remove the reference there, or delete them'],
  ])('names %s that hold it', (count, message) => {
    const { conditions } = configObjectStatus(deleting, { ...facts, workloads: workloads(count) })
    expect(conditions).toMatchObject([{ type: 'DeletionBlocked', message }])
  })

  it('does not name thousands', () => {
    const { conditions, referencingWorkloads } = configObjectStatus(deleting, { ...facts, workloads: workloads(1_000) })
    expect(conditions[0]?.message).toContain('and 990 more')
    expect(conditions[0]?.message.length).toBeLessThan(400)
    expect(referencingWorkloads).toHaveLength(1_000)
  })

  it('takes the condition away when the object is not being deleted', () => {
    const blocked = configObjectStatus(deleting, { ...facts, workloads: workloads(1) })
    const live = { metadata: { name: 'c', generation: 3 }, status: blocked }
    expect(configObjectStatus(live, { ...facts, workloads: workloads(1) }).conditions).toEqual([])
  })
})
