import type { VirtualMCPServer } from '@thv/resources/kinds/virtual-mcp-server/schema'
import { describe, expect, it } from 'vitest'
import type { WorkloadPlan } from '../../deployment/deployment-plan.ts'
import { virtualServerHealth } from './health.ts'
import { virtualServerStatus } from './status.ts'

const PLAN: WorkloadPlan = {
  ...{ children: [], guards: [], alias: undefined, unwanted: [], conditions: [], status: {}, blockers: [], unsupported: [] },
  ...{ stopsWhatRuns: false, url: 'http://x/mcp' },
}
const condition = (type: string, status = 'True') => ({
  ...{ type, status, reason: 'Written', message: 'before', lastTransitionTime: '2026-01-01T00:00:00Z', observedGeneration: 1 },
})

function statusOf(status: object, plan: Partial<WorkloadPlan> = {}) {
  const server = { metadata: { name: 'v', namespace: 'ns' }, spec: {}, status } as unknown as VirtualMCPServer
  return virtualServerStatus(server, {
    ...{ generation: 2, plan: { ...PLAN, ...plan }, executed: { conflicts: [], aliasTaken: undefined }, now: Date.parse('2026-03-01') },
    health: (backends) => virtualServerHealth({ deployment: undefined, pods: [] }, backends),
  })
}
const types = ({ conditions = [] }: ReturnType<typeof statusOf>) => conditions.map(({ type }) => type).sort()

describe('status of a VirtualMCPServer', () => {
  it('keeps what the virtual server reports and removes what the operator said before', () => {
    const discoveredBackends = [{ name: 'a', status: 'ready' }]
    const before = [
      'ToolConflicts',
      'BackendsDiscovered',
      'NameConflict',
      'BackendAuthConfig-a',
      'DiscoveredAuthConfig-a',
      'example.com/Other',
    ]
    const status = statusOf({ discoveredBackends, backendCount: 1, conditions: before.map((type) => condition(type)) })
    expect(status).toMatchObject({ discoveredBackends, backendCount: 1 })
    expect(types(status)).toEqual(['BackendsDiscovered', 'Ready', 'ToolConflicts', 'Valid', 'example.com/Other'])
    expect(status.conditions).toContainEqual(condition('ToolConflicts'))
  })

  it('is Failed with a blocker that somebody must see to, and Pending with one that heals', () => {
    const blocked = (reason: string) => statusOf({}, { blockers: [{ condition: 'GroupRefValidated', reason, message: `about ${reason}` }] })
    expect(blocked('GroupRefNotFound')).toMatchObject({ phase: 'Failed', message: 'about GroupRefNotFound' })
    expect(blocked('GroupRefNotReady')).toMatchObject({ phase: 'Pending', message: 'about GroupRefNotReady' })
  })

  it('names the parts that are not built', () => {
    const { phase, message, conditions } = statusOf({}, { unsupported: [{ field: 'spec.passthroughHeaders', middleware: 'is not built' }] })
    expect(phase).toBe('Failed')
    expect(message).toContain('spec.passthroughHeaders (is not built)')
    expect(conditions).toContainEqual(expect.objectContaining({ type: 'MiddlewareUnsupported', status: 'True' }))
  })
})
