import type { Deployment } from '@thv/kube'
import type { MCPRegistry } from '@thv/resources/kinds/mcp-registry/schema'
import { describe, expect, it } from 'vitest'
import { planOf } from '../testing/plan-registry.ts'
import { registryStatus, type StatusInput } from './registry-status.ts'
import { type SyncStatus, syncFactsOf } from './sync-status.ts'

const spec: MCPRegistry['spec'] = { source: { configMap: { name: 'servers' } } }
const registry = { metadata: { name: 'demo', namespace: 'team', generation: 3 }, spec } as MCPRegistry

function statusOf(phase: NonNullable<SyncStatus['phase']>, readyReplicas: number, change: Partial<StatusInput> = {}) {
  return registryStatus(registry, {
    plan: planOf(spec),
    deployment: { metadata: { name: 'demo-api' }, status: { replicas: 1, readyReplicas } } as Deployment,
    podProblem: undefined,
    conflict: undefined,
    sync: { status: { phase, message: 'told', serverCount: 7 }, conditions: [], neverSucceeded: false, pending: false },
    url: 'http://demo-api.team.svc.cluster.local:8080',
    generation: 3,
    mayWriteTimes: true,
    now: Date.parse('2026-03-01T10:00:00Z'),
    ...change,
  })
}

describe('registryStatus', () => {
  it.each([
    ['Syncing', 0, 'Syncing', 'Deploying', 'False'],
    ['Syncing', 1, 'Syncing', 'Ready', 'False'],
    ['Complete', 0, 'Pending', 'Deploying', 'False'],
    ['Complete', 1, 'Ready', 'Ready', 'True'],
    ['Failed', 0, 'Failed', 'Deploying', 'False'],
    ['Failed', 1, 'Failed', 'Ready', 'False'],
  ] as const)(
    '[002-250] one status holds sync state, API state, phase and conditions: %s with %i ready pods is %s',
    (sync, ready, phase, api, is) => {
      const status = statusOf(sync, ready)
      expect(status).toMatchObject({ phase, observedGeneration: 3, syncStatus: { phase: sync, serverCount: 7 }, apiStatus: { phase: api } })
      const condition = (type: string) => status.conditions?.find((each) => each.type === type)?.status
      expect([condition('Ready'), condition('APIReady')]).toEqual([is, ready > 0 ? 'True' : 'False'])
      expect(status.url !== undefined).toBe(ready > 0)
    },
  )

  it('is Failed, with the pods named, when the API can never start', () => {
    const podProblem = { fatal: true, message: 'the image cannot be pulled' } as StatusInput['podProblem']
    expect(statusOf('Complete', 0, { podProblem })).toMatchObject({
      phase: 'Failed',
      message: 'API deployment failed: the image cannot be pulled',
      apiStatus: { phase: 'Error' },
    })
  })

  it('follows the Deployment while no pod can be asked about its sources, and keeps what was known of them', () => {
    const known: SyncStatus = { phase: 'Complete', serverCount: 7, lastSyncTime: '2026-03-01T09:00:00Z' }
    const registries: MCPRegistry['spec'] = { registries: [{ name: 'a', configMapRef: { name: 'servers' } }] }
    const sync = syncFactsOf(undefined, known)
    expect(sync.pending).toBe(true) // it is asked again soon
    const status = statusOf('Complete', 1, { plan: planOf(registries), sync })
    expect(status).toMatchObject({ phase: 'Ready', syncStatus: known })
    expect(status.conditions?.find(({ type }) => type === 'SyncSuccessful')).toMatchObject({
      status: 'Unknown',
      reason: 'StatusNotReadable',
    })
  })
})
