import { describe, expect, it } from 'vitest'
import type { ControllerRevision, StatefulSet } from '../workload/workload-kinds.ts'
import { statefulSetSettings } from './stateful-set-settings.ts'
import { placePods } from './stateful-set-step.ts'

describe('placePods', () => {
  it('plans no more pods at a time than fit into memory', () => {
    const set = { metadata: { name: 'huge', namespace: 'a', uid: 'u' }, spec: { replicas: 20_000_000, template: {} } } as StatefulSet
    const revision = {
      metadata: { name: 'huge-1' },
      data: { spec: { template: { spec: { containers: [] } } } },
      revision: 1,
    } as ControllerRevision
    const revisions = { current: revision, update: revision, collisionCount: 0 }
    const third = { metadata: { name: 'huge-2', namespace: 'a', uid: 'p' } }
    const { replicas, condemned } = placePods(set, [third], { settings: statefulSetSettings(set), revisions })
    expect([replicas.length, condemned.length]).toEqual([501, 0])
    expect(replicas[2]).toBe(third)
  })
})
