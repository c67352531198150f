import type { Pod, StatefulSet } from '@thv/kube'
import { describe, expect, it } from 'vitest'
import { rolloutOf } from './rollout.ts'

const set = (status: StatefulSet['status'], more: { generation?: number; replicas?: number } = {}): StatefulSet => ({
  metadata: { name: 'demo', generation: more.generation ?? 2 },
  spec: more.replicas === undefined ? {} : { replicas: more.replicas },
  ...(status && { status }),
})
const all = { observedGeneration: 2, updatedReplicas: 1, readyReplicas: 1 }
const rollout = (statefulSet: StatefulSet | undefined, more: { wasComplete?: boolean; pods?: Pod[]; appliedGeneration?: number } = {}) =>
  rolloutOf({ statefulSet, pods: [], appliedGeneration: 2, wasComplete: false, ...more })

describe('rolloutOf', () => {
  it('is complete when all pods are those of the last change', () => {
    expect(rollout(set(all))).toEqual({ ready: true, complete: true, message: '1 of 1 pods ready' })
    expect(rollout(set({ ...all, updatedReplicas: 3, readyReplicas: 3 }, { replicas: 3 }))).toMatchObject({ complete: true })
  })

  it.each<[string, StatefulSet | undefined, string]>([
    ['nothing is there', undefined, 'does not exist yet'],
    ['not observed yet', set(undefined), 'has not been taken up yet'],
    ['an earlier change is reported', set({ ...all, observedGeneration: 1 }), 'has not been taken up yet'],
    ['the cache shows what was before our apply', set({ ...all, observedGeneration: 1 }, { generation: 1 }), 'has not been taken up yet'],
    ['a pod is of an earlier change', set({ ...all, updatedReplicas: 0 }), '1 of 1 pods ready, 0 up to date'],
    ['a pod is missing', set({ ...all, readyReplicas: 1 }, { replicas: 2 }), '1 of 2 pods ready'],
    ['it is scaled to nothing', set({ observedGeneration: 2 }, { replicas: 0 }), 'scaled to 0 pods'],
  ])('is not ready when %s', (_, statefulSet, message) => {
    expect(rollout(statefulSet)).toMatchObject({ ready: false, complete: false, message: expect.stringContaining(message) })
  })

  it('stays ready after that as long as one pod is', () => {
    const degraded = set({ ...all, readyReplicas: 1, updatedReplicas: 1 }, { replicas: 3 })
    expect(rollout(degraded, { wasComplete: true })).toMatchObject({ ready: true, complete: false, message: '1 of 3 pods ready' })
    expect(rollout(set({ ...all, readyReplicas: 0 }), { wasComplete: true })).toMatchObject({ ready: false })
  })

  it('says in the words of the kubelet why a pod does not come up', () => {
    const pod = (status: Pod['status']): Pod => ({ metadata: { name: 'demo-0' }, ...(status && { status }) })
    const waiting = (reason: string, message?: string) =>
      pod({ containerStatuses: [{ name: 'mcp', state: { waiting: { reason, ...(message && { message }) } } }] })
    const messageOf = (pods: Pod[]) => rollout(set({ observedGeneration: 2 }), { pods }).message
    expect(messageOf([waiting('ImagePullBackOff', 'no such image')])).toContain('pod demo-0: ImagePullBackOff: no such image')
    expect(messageOf([waiting('ContainerCreating')])).not.toContain('demo-0')
    expect(messageOf([waiting('CrashLoopBackOff', 'x'.repeat(5_000))]).length).toBeLessThan(400)
    const conditions = [{ type: 'PodScheduled', status: 'False', reason: 'Unschedulable', message: 'no node' }]
    expect(messageOf([pod({ conditions })])).toContain('pod demo-0: Unschedulable: no node')
  })
})
