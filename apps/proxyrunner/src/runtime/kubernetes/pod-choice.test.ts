import type { Pod } from '@thv/kube'
import { describe, expect, it } from 'vitest'
import { readyPod } from '../testing/pods.ts'
import { choosePod, instanceOf, isReady } from './pod-choice.ts'

const chosen = (pods: Pod[], taken: string[] = []) => choosePod(pods, new Set(taken))?.metadata.name

describe('choosePod', () => {
  it('takes the newest of those that are ready and not taken', () => {
    const pods = [readyPod('demo-0', { second: 1 }), readyPod('demo-1', { second: 3 }), readyPod('demo-2', { second: 2 })]
    expect(chosen(pods)).toBe('demo-1')
    expect(chosen(pods, ['uid-demo-1'])).toBe('demo-2')
    expect(chosen(pods, ['uid-demo-0', 'uid-demo-1', 'uid-demo-2'])).toBeUndefined()
    expect(chosen(pods.toReversed())).toBe('demo-1')
  })

  it('takes the higher number of two of the same second', () => {
    expect(chosen([readyPod('demo-0'), readyPod('demo-1')])).toBe('demo-1')
  })

  it('passes over pods that are going, not ready, or whose server does not run', () => {
    const pod = readyPod('demo-0')
    expect(isReady(pod)).toBe(true)
    expect(isReady({ ...pod, metadata: { ...pod.metadata, deletionTimestamp: '2026-01-01T00:00:00Z' } })).toBe(false)
    expect(isReady({ ...pod, status: { ...pod.status, conditions: [{ type: 'Ready', status: 'False' }] } })).toBe(false)
    expect(isReady({ ...pod, status: { ...pod.status, containerStatuses: [{ name: 'mcp', state: { waiting: {} } }] } })).toBe(false)
    expect(isReady({ ...pod, status: { ...pod.status, containerStatuses: [{ name: 'other', state: { running: {} } }] } })).toBe(false)
    expect(isReady({ metadata: { name: 'demo-0' } })).toBe(false)
  })

  it('gives a container that was started again another name', () => {
    expect(instanceOf(readyPod('demo-0', { restarts: 0 }))).not.toBe(instanceOf(readyPod('demo-0', { restarts: 1 })))
  })
})
