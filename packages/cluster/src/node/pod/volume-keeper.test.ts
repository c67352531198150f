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
      volumes: { renewAt: undefined, setUp: async () => {}, refresh: async () => answers[calls++] ?? [] },
      event: (_type: string, reason: string) => told.push(reason),
    } as unknown as PodContext
    const stop = new AbortController()
    const keeper = new VolumeKeeper(context, stop.signal)
    await keeper.mount()
    keeper.refresh()
    await clock.advance(2 * KUBELET_TIMINGS.retry)
    expect([calls, told]).toEqual([3, ['FailedMount', 'FailedMount']])
    await clock.advance(100 * KUBELET_TIMINGS.retry)
    expect([calls, clock.pending]).toEqual([3, 0])
    stop.abort()
    await keeper.close()
  })

  it('reads again what changes while volumes are being mounted', async () => {
    const clock = new TestClock()
    const seen: string[] = []
    let content = 'missing'
    const context = {
      env: { clock, timings: KUBELET_TIMINGS, onError: (error: unknown) => expect(error).toBeUndefined() },
      pod: { metadata: {} },
      volumes: {
        renewAt: undefined,
        async setUp() {
          seen.push(content)
          // Another volume is read now; meanwhile the object of this one appears.
          content = 'there'
          keeper.refresh()
        },
        async refresh() {
          seen.push(content)
          return []
        },
      },
    } as unknown as PodContext
    const stop = new AbortController()
    const keeper = new VolumeKeeper(context, stop.signal)
    await keeper.mount()
    await clock.advance(0)
    expect(seen).toEqual(['missing', 'there'])
    stop.abort()
    await keeper.close()
  })
})
