import { TestClock } from '@thv/kernel/clock'
import { describe, expect, it } from 'vitest'
import { createMetrics } from './metrics.ts'
import { addMemoryRelease } from './process-metrics.ts'

describe('addMemoryRelease', () => {
  it('counts collections, and those that failed', async () => {
    const metrics = createMetrics()
    const clock = new TestClock()
    const stopped = new AbortController()
    let busy = 0
    let fails = false
    const collect = async () => {
      if (fails) throw new Error('no collection')
    }
    addMemoryRelease(metrics, stopped.signal, { clock, busyMs: () => busy, collect, heap: () => ({ used: 0, size: 64 * 1024 * 1024 }) })
    const count = (result: string) =>
      Number(new RegExp(`^toolhive_memory_releases_total\\{result="${result}"\\} (\\d+)`, 'm').exec(metrics.render())?.[1])
    const seconds = async (number: number) => {
      for (let second = 0; second < number; second++) await clock.advance(1_000)
    }
    expect([count('done'), count('failed')]).toEqual([0, 0])
    await seconds(30)
    expect([count('done'), count('failed')]).toEqual([1, 0])
    busy = 900
    await seconds(30)
    expect([count('done'), count('failed')]).toEqual([1, 0])
    busy = 0
    fails = true
    await seconds(30)
    expect([count('done'), count('failed')]).toEqual([1, 1])
    stopped.abort()
    expect(clock.pending).toBe(0)
  })
})
