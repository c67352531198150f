import { TestClock } from '@thv/kernel/clock'
import { describe, expect, it } from 'vitest'
import { createMetrics } from './metrics.ts'
import { addMemoryRelease, sharedMemoryRelease } from './process-metrics.ts'

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
    const errors: unknown[] = []
    const heap = () => ({ used: 0, size: 64 * 1024 * 1024 })
    const onError = (error: unknown) => errors.push(error)
    const countOfThread = addMemoryRelease(metrics, stopped.signal, { clock, busyMs: () => busy, collect, heap, onError })
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
    expect(errors).toEqual([new Error('no collection')])
    countOfThread('done')
    expect([count('done'), count('failed')]).toEqual([2, 1])
    stopped.abort()
    expect(clock.pending).toBe(0)
  })
})

describe('sharedMemoryRelease', () => {
  it('watches the process once, and every program counts until it ends', async () => {
    const clock = new TestClock()
    const closed = new AbortController()
    let collections = 0
    let busy = 0
    const collect = async () => void collections++
    const heap = () => ({ used: 0, size: 64 * 1024 * 1024 })
    const add = sharedMemoryRelease(closed.signal, { clock, busyMs: () => busy, collect, heap })
    const programs = [1, 2].map(() => ({ metrics: createMetrics(), ended: new AbortController() }))
    for (const { metrics, ended } of programs) add(metrics, ended.signal)
    const counts = () =>
      programs.map(({ metrics }) => /^toolhive_memory_releases_total\{result="done"\} (\d+)/m.exec(metrics.render())?.[1])
    for (let second = 0; second < 30; second++) await clock.advance(1_000)
    expect([collections, counts()]).toEqual([1, ['1', '1']])
    programs[0]?.ended.abort()
    busy = 900
    await clock.advance(1_000)
    busy = 0
    for (let second = 0; second < 90; second++) await clock.advance(1_000)
    expect([collections, counts()]).toEqual([2, ['1', '2']])
    closed.abort()
    expect(clock.pending).toBe(0)
  })
})
