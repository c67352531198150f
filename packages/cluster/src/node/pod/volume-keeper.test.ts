import { TestClock } from '@thv/kernel/clock'
import { describe, expect, it } from 'vitest'
import { MountError } from '../volumes/mount-error.ts'
import { KUBELET_TIMINGS } from './node-env.ts'
import type { PodContext } from './pod-context.ts'
import { VolumeKeeper } from './volume-keeper.ts'

describe('VolumeKeeper', () => {
  it('asks again for what it could not read when it changed, and no more once it could', async () => {
    const clock = new TestClock()
    const answers = [[new MountError('vol', 'the server is away')], [new MountError('vol', 'the server is away')], []]
    const told: string[] = []
    let calls = 0
    const context = {
      env: { clock, timings: KUBELET_TIMINGS, onError: (error: unknown) => expect(error).toBeUndefined() },
      pod: { metadata: {} },
      volumes: { renewAt: undefined, refresh: async () => answers[calls++] ?? [] },
      event: (_type: string, reason: string) => told.push(reason),
    } as unknown as PodContext
    const stop = new AbortController()
    const keeper = new VolumeKeeper(context, stop.signal)
    keeper.refresh()
    await clock.advance(2 * KUBELET_TIMINGS.retry)
    expect([calls, told]).toEqual([3, ['FailedMount', 'FailedMount']])
    await clock.advance(100 * KUBELET_TIMINGS.retry)
    expect([calls, clock.pending]).toEqual([3, 0])
    stop.abort()
    await keeper.close()
  })
})
