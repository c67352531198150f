import type { VirtualMCPServer } from '@thv/resources/kinds/virtual-mcp-server/schema'
import { describe, expect, it } from 'vitest'
import type { WorkloadPlan } from '../../deployment/deployment-plan.ts'
import type { ObservedPods } from '../../deployment/status/pods-health.ts'
import { virtualServerHealth } from './health.ts'
import { virtualServerStatus } from './status.ts'

const PLAN: WorkloadPlan = {
  ...{ children: [], guards: [], alias: undefined, unwanted: [], conditions: [], status: {}, blockers: [], unsupported: [] },
  ...{ stopsWhatRuns: false, url: 'http://x/mcp' },
}
const condition = (type: string, status = 'True') => ({
  ...{ type, status, reason: 'Written', message: 'before', lastTransitionTime: '2026-01-01T00:00:00Z', observedGeneration: 1 },
})

function statusOf(status: object, plan: Partial<WorkloadPlan> = {}, observed: ObservedPods = { deployment: undefined, pods: [] }) {
  const server = { metadata: { name: 'v', namespace: 'ns' }, spec: {}, status } as unknown as VirtualMCPServer
  return virtualServerStatus(server, {
    ...{ generation: 2, plan: { ...PLAN, ...plan }, executed: { conflicts: [], aliasTaken: undefined }, now: Date.parse('2026-03-01') },
    health: (reported) => virtualServerHealth(observed, reported),
  })
}
const isReady = (status: string, reason: unknown = expect.anything()) => expect.objectContaining({ type: 'Ready', status, reason })
const types = ({ conditions = [] }: ReturnType<typeof statusOf>) => conditions.map(({ type }) => type).sort()

const pod = (status: object) => ({ metadata: { name: 'v-1' }, status })
const observed = (...statuses: object[]) =>
  ({ deployment: { metadata: { name: 'v' }, spec: { replicas: 1 } }, pods: statuses.map(pod) }) as unknown as ObservedPods
const RUNNING = observed({ phase: 'Running', conditions: [{ type: 'Ready', status: 'True' }] })
const waiting = (reason: string) => observed({ phase: 'Pending', containerStatuses: [{ name: 'vmcp', state: { waiting: { reason } } }] })
const backends = (...states: string[]) => ({ discoveredBackends: states.map((status, index) => ({ name: `b${index}`, status })) })

describe('status of a VirtualMCPServer', () => {
  it('[002-152] is Ready when a pod is ready and every backend can be called', () => {
    for (const reported of [backends('ready', 'ready'), backends('ready', 'unauthenticated')])
      expect(statusOf(reported, {}, RUNNING)).toMatchObject({ phase: 'Ready', conditions: expect.arrayContaining([isReady('True')]) })
    expect(statusOf(backends('ready', 'unknown'), {}, RUNNING).phase).toBe('Degraded')
  })

  it('[002-153] is Degraded while a backend is unhealthy, and names it', () => {
    for (const state of ['unavailable', 'degraded']) {
      const { phase, message, conditions } = statusOf(backends('ready', state), {}, RUNNING)
      expect({ phase, message }).toEqual({ phase: 'Degraded', message: expect.stringMatching(/1 of 2 backends .*b1/) })
      expect(conditions).toContainEqual(isReady('False', 'BackendsDegraded'))
    }
    expect(statusOf(backends('unavailable'), {}, RUNNING).conditions).toContainEqual(isReady('False', 'BackendsUnavailable'))
  })

  it('[002-154] is Pending until a pod is ready, with the reason', () => {
    const states = [
      [{ deployment: undefined, pods: [] }, 'DeploymentNotReady'],
      [observed({ phase: 'Pending' }), 'DeploymentNotReady'],
      [observed({ phase: 'Pending', conditions: [{ type: 'PodScheduled', status: 'False', message: 'no node' }] }), 'Unschedulable'],
      [waiting('ImagePullBackOff'), 'ImagePullBackOff'],
    ] as const
    for (const [pods, reason] of states) {
      const { phase, message, conditions } = statusOf(backends('ready'), {}, pods)
      expect({ phase, message }).toEqual({ phase: 'Pending', message: expect.stringMatching(/\w/) })
      expect(conditions).toContainEqual(isReady('False', reason))
    }
  })

  it('[002-155] is Failed with an invalid spec or failed pods, and names the cause', () => {
    const blockers = [{ condition: 'Valid', reason: 'ValidationFailed', message: 'spec.groupRef must be set' }]
    expect(statusOf({}, { blockers }, RUNNING)).toMatchObject({ phase: 'Failed', message: 'spec.groupRef must be set' })
    expect(statusOf({}, {}, waiting('CrashLoopBackOff'))).toMatchObject({
      phase: 'Failed',
      message: expect.stringMatching(/v-1.*kubectl logs/s),
      conditions: expect.arrayContaining([isReady('False', 'CrashLoopBackOff')]),
    })
  })

  it('[002-162] tells validation, discovery and readiness apart', () => {
    const blockers = [{ condition: 'Valid', reason: 'ValidationFailed', message: 'wrong' }]
    const found = { type: 'BackendsDiscovered', status: 'True', reason: 'BackendsDiscoveredSuccessfully', message: '2 backends' } as const
    const told = (...args: Parameters<typeof statusOf>) => {
      const { conditions = [] } = statusOf(...args)
      return ['Valid', 'BackendsDiscovered', 'Ready'].map((type) => conditions.find((each) => each.type === type)?.status)
    }
    expect(told({}, { conditions: [found] }, RUNNING)).toEqual(['True', 'True', 'True'])
    expect(told({}, { conditions: [found], blockers }, RUNNING)).toEqual(['False', 'True', 'False'])
    expect(told({}, { conditions: [{ ...found, status: 'False' }] }, RUNNING)).toEqual(['True', 'False', 'True'])
    expect(told({}, { conditions: [found] }, waiting('CrashLoopBackOff'))).toEqual(['True', 'True', 'False'])
  })

  it('[002-170] is Degraded while the virtual server reports a name that no setting settles', () => {
    const conflicts = { ...condition('ToolConflicts'), reason: 'UnresolvedConflict', message: 'tool search of a is unresolved' }
    const { phase, message, conditions } = statusOf({ ...backends('ready'), conditions: [conflicts] }, {}, RUNNING)
    expect({ phase, message }).toEqual({ phase: 'Degraded', message: expect.stringContaining('tool search of a is unresolved') })
    expect(conditions).toContainEqual(isReady('False', 'UnresolvedConflict'))
    expect(statusOf({ ...backends('ready'), conditions: [{ ...conflicts, reason: 'NamesConflict' }] }, {}, RUNNING).phase).toBe('Ready')
  })

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
