import { execFile } from 'node:child_process'
import { promisify } from 'node:util'
import { describe, expect, it } from 'vitest'
import { TestClock } from './clock.ts'
import { type Collection, findCollector, heapSize, releaseMemoryWhenIdle } from './idle-memory.ts'

const IDLE = 1
const BUSY = 400
const MIB = 1024 * 1024

describe('releaseMemoryWhenIdle', () => {
  it('collects after two quiet seconds, once', async () => {
    const { seconds, collections } = started()
    await seconds(BUSY, IDLE, BUSY, IDLE)
    expect(collections()).toBe(0)
    await seconds(IDLE)
    expect(collections()).toBe(1)
    await seconds(...Array.from({ length: 3_600 }, () => IDLE))
    expect(collections()).toBe(1)
  })

  it('treats the start as work', async () => {
    const { seconds, collections } = started()
    await seconds(IDLE, IDLE)
    expect(collections()).toBe(1)
  })

  it('collects again after the next burst, not sooner than ten seconds after the last', async () => {
    const { seconds, collections } = started()
    await seconds(IDLE, IDLE, BUSY, IDLE, IDLE, IDLE)
    expect(collections()).toBe(1)
    await seconds(IDLE, IDLE, IDLE, IDLE, IDLE, IDLE)
    expect(collections()).toBe(2)
  })

  it('waits longer each time work comes back within a minute of a collection, and two seconds again after a quiet minute', async () => {
    const { seconds, collections } = started()
    const idle = (count: number) => seconds(...Array.from({ length: count }, () => IDLE))
    await idle(2)
    await seconds(BUSY)
    for (const [index, needed] of [4, 8, 16, 32, 60, 60].entries()) {
      await seconds(...Array.from({ length: 10 }, () => BUSY))
      await idle(needed - 1)
      expect(collections(), `before ${needed} quiet seconds`).toBe(1 + index)
      await idle(1)
      expect(collections(), `after ${needed} quiet seconds`).toBe(2 + index)
    }
    await idle(60)
    await seconds(BUSY)
    await idle(2)
    expect(collections()).toBe(8)
  })

  it('does not collect in the gaps of bursts that follow each other', async () => {
    const { seconds, collections } = started()
    for (let burst = 0; burst < 100; burst++) await seconds(BUSY, BUSY, IDLE, IDLE, IDLE, IDLE)
    expect(collections()).toBeLessThanOrEqual(2)
  })

  it('never collects during a burst that does not end', async () => {
    const { seconds, collections } = started()
    await seconds(...Array.from({ length: 1_000 }, () => BUSY))
    expect(collections()).toBe(0)
  })

  it('does not count its own collection as work', async () => {
    const slow = { busy: 0 }
    const { seconds, collections } = started({ onCollect: () => (slow.busy += BUSY), extra: () => slow })
    await seconds(...Array.from({ length: 60 }, () => IDLE))
    expect(collections()).toBe(1)
  })

  it('ignores jumps of the wall clock', async () => {
    const { clock, seconds, collections } = started()
    await seconds(IDLE, IDLE, BUSY)
    clock.jump(86_400_000)
    await seconds(IDLE, IDLE)
    expect(collections()).toBe(1)
    clock.jump(-2 * 86_400_000)
    await seconds(...Array.from({ length: 10 }, () => IDLE))
    expect(collections()).toBe(2)
  })

  it('reports a failed collection and goes on', async () => {
    const errors: unknown[] = []
    const { seconds } = started({
      onCollect: () => {
        throw new Error('no memory to look at')
      },
      onError: (error) => errors.push(error),
    })
    await seconds(IDLE, IDLE, BUSY, ...Array.from({ length: 12 }, () => IDLE))
    expect(errors).toHaveLength(2)
  })

  it('learns nothing of what lives from a collection that failed, and tries again', async () => {
    let fails = true
    const { seconds, kinds } = started({
      heap: () => ({ used: 100 * MIB, size: 120 * MIB }),
      onCollect: () => {
        if (fails) throw new Error('no memory to look at')
      },
      onError: () => {},
    })
    await seconds(IDLE, IDLE)
    fails = false
    await seconds(BUSY, ...Array.from({ length: 20 }, () => IDLE))
    expect(kinds).toEqual(['brief'])
  })

  it('reports an error of the callback after a collection', async () => {
    const errors: unknown[] = []
    const onCollected = () => {
      throw new Error('no counter')
    }
    const { seconds, collections } = started({ onCollected, onError: (error) => errors.push(error) })
    await seconds(IDLE, IDLE)
    expect([collections(), errors]).toEqual([1, [new Error('no counter')]])
  })

  it('leaves a heap alone while more than 64 MiB of it live', async () => {
    const heap = { used: 100 * MIB, size: 120 * MIB }
    const { seconds, collections } = started({ heap: () => heap })
    const idle = (count: number) => seconds(...Array.from({ length: count }, () => IDLE))
    await idle(2)
    expect(collections(), 'may be garbage').toBe(1)
    await idle(100)
    await seconds(BUSY)
    await idle(100)
    expect(collections(), 'lives').toBe(1)
    heap.used = 64 * MIB
    await idle(1)
    expect(collections(), 'V8 has collected by itself').toBe(2)
    heap.used = 100 * MIB
    await idle(100)
    await seconds(BUSY)
    await idle(2)
    expect(collections(), 'garbage again').toBe(3)
  })

  it('does not try a heap with more than 128 MiB in use', async () => {
    const heap = { used: 129 * MIB, size: 140 * MIB }
    const { seconds, collections } = started({ heap: () => heap })
    await seconds(BUSY, ...Array.from({ length: 60 }, () => IDLE))
    expect(collections()).toBe(0)
    heap.used = 128 * MIB
    await seconds(IDLE)
    expect(collections()).toBe(1)
  })

  it('collects a heap over 20 MiB briefly, and its nursery thirteen seconds later, unless there is work', async () => {
    const heap = { used: 20 * MIB, size: 40 * MIB }
    const { seconds, kinds } = started({ heap: () => heap })
    const idle = (count: number) => seconds(...Array.from({ length: count }, () => IDLE))
    await idle(40)
    expect(kinds).toEqual(['thorough'])
    heap.used += 1
    await idle(60)
    await seconds(BUSY)
    await idle(14)
    expect(kinds).toEqual(['thorough', 'brief'])
    await idle(1)
    expect(kinds).toEqual(['thorough', 'brief', 'nursery'])
    await idle(3_600)
    expect(kinds).toHaveLength(3)
    await seconds(BUSY)
    await idle(14)
    await seconds(BUSY)
    await idle(3)
    expect(kinds).toEqual(['thorough', 'brief', 'nursery', 'brief'])
  })

  it('counts the garbage of the nursery as pages, not as memory in use', () => {
    const space = (space_name: string, physical: number, used: number) => ({
      space_name,
      ...{ space_size: physical * MIB, physical_space_size: physical * MIB, space_used_size: used * MIB, space_available_size: 0 },
    })
    const spaces = [
      ...[space('new_space', 48, 31), space('new_large_object_space', 3, 2), space('old_space', 30, 29)],
      ...[space('code_space', 4, 3), space('trusted_space', 5, 4), space('large_object_space', 2, 2)],
    ]
    expect(heapSize(spaces)).toEqual({ size: 92 * MIB, used: 38 * MIB })
  })

  it('lets a small heap keep its compiled code until a minute is quiet, but for the start', async () => {
    const heap = { used: 12 * MIB, size: 32 * MIB - 1 }
    const { seconds, collections } = started({ heap: () => heap })
    const idle = (count: number) => seconds(...Array.from({ length: count }, () => IDLE))
    await idle(2)
    expect(collections(), 'start').toBe(1)
    await idle(100)
    await seconds(BUSY)
    await idle(59)
    expect(collections(), 'before the minute is over').toBe(1)
    await idle(1)
    expect(collections(), 'after the minute').toBe(2)
    await idle(100)
    heap.size = 32 * MIB
    await seconds(BUSY)
    await idle(2)
    expect(collections(), 'larger heap').toBe(3)
  })

  it('ends with its signal', async () => {
    const { clock, stop, seconds, collections } = started()
    await seconds(IDLE)
    stop()
    expect(clock.pending).toBe(0)
    expect(collections()).toBe(0)
  })
})

it('finds the collector of V8 although other threads take its flag back meanwhile', () => {
  const collector = () => Promise.resolve()
  let calls = 0
  expect(findCollector(() => (++calls < 3 ? undefined : collector))).toBe(collector)
  expect(() => findCollector(() => undefined)).toThrow('V8 offers no collection')
  expect(findCollector()).toBeTypeOf('function')
})

it('shrinks the nursery of a real process and keeps no process alive', async () => {
  // In a process of its own: here it would depend on the other tests, and they on it.
  const program = `
    import { getHeapSpaceStatistics } from 'node:v8'
    import { releaseMemoryWhenIdle } from ${JSON.stringify(new URL('idle-memory.ts', import.meta.url))}
    const nursery = () => getHeapSpaceStatistics().find(({ space_name: name }) => name === 'new_space').physical_space_size
    for (let round = 0; round < 40; round++) JSON.parse(JSON.stringify(Array.from({ length: 4_000 }, (_, index) => ({ index }))))
    const before = nursery()
    await new Promise((resolve) => {
      const alive = setTimeout(resolve, 30_000)
      const { signal } = new AbortController()
      const onCollected = () => { clearTimeout(alive); resolve() }
      releaseMemoryWhenIdle({ signal, busyMs: () => 0, onCollected })
    })
    console.log(JSON.stringify({ before, after: nursery(), isExposed: 'gc' in globalThis }))`
  const { stdout } = await promisify(execFile)(process.execPath, ['--input-type=module', '--eval', program], { timeout: 120_000 })
  const { before, after, isExposed } = JSON.parse(stdout) as { before: number; after: number; isExposed: boolean }
  expect(after).toBeLessThan(before / 2)
  expect(isExposed).toBe(false)
})

it('returns the pages of a larger heap of a real process thirteen seconds after a brief collection', async () => {
  const program = `
    import { releaseMemoryWhenIdle } from ${JSON.stringify(new URL('idle-memory.ts', import.meta.url))}
    const objects = (count) => Array.from({ length: count }, (_, index) => ({ index }))
    globalThis.kept = objects(600_000)
    globalThis.garbage = objects(1_200_000)
    globalThis.garbage = undefined
    const rss = process.memoryUsage.rss
    const before = rss()
    const ends = performance.now() + 60_000
    let collections = 0
    releaseMemoryWhenIdle({ signal: new AbortController().signal, busyMs: () => 0, onCollected: () => collections++ })
    while (performance.now() < ends && rss() > before - 15e6) await new Promise((resolve) => setTimeout(resolve, 250))
    console.log(JSON.stringify({ before, after: rss(), collections }))`
  const { stdout } = await promisify(execFile)(process.execPath, ['--input-type=module', '--eval', program], { timeout: 120_000 })
  const { before, after, collections } = JSON.parse(stdout) as { before: number; after: number; collections: number }
  expect(collections).toBe(1)
  expect(after).toBeLessThan(before - 15e6)
})

it('leaves memory bounded in a burst that never ends, without a collection of its own', async () => {
  const program = `
    import { releaseMemoryWhenIdle } from ${JSON.stringify(new URL('idle-memory.ts', import.meta.url))}
    const stopped = new AbortController()
    let collections = 0
    releaseMemoryWhenIdle({ signal: stopped.signal, onCollected: () => collections++ })
    const work = async (rounds) => {
      for (let round = 0; round < rounds; round++) {
        JSON.parse(JSON.stringify(Array.from({ length: 4_000 }, (_, index) => ({ index }))))
        await new Promise(setImmediate)
      }
      return process.memoryUsage().rss
    }
    const before = await work(300)
    const ends = performance.now() + 4_500
    let after = 0
    while (performance.now() < ends) after = await work(100)
    stopped.abort()
    console.log(JSON.stringify({ before, after, collections }))`
  const { stdout } = await promisify(execFile)(process.execPath, ['--input-type=module', '--eval', program], { timeout: 120_000 })
  const { before, after, collections } = JSON.parse(stdout) as { before: number; after: number; collections: number }
  expect(collections).toBe(0)
  expect(after).toBeLessThan(2 * before)
})

interface Setting {
  readonly onCollect?: () => void
  readonly onCollected?: () => void
  readonly onError?: (error: unknown) => void
  readonly heap?: () => { used: number; size: number }
  /** Busy time on top, taken by the next look. */
  readonly extra?: () => { busy: number }
}

function started({ onCollect, onCollected, onError, heap = () => ({ used: 0, size: 40 * MIB }), extra }: Setting = {}) {
  const clock = new TestClock()
  const controller = new AbortController()
  let busy = 0
  const kinds: Collection[] = []
  releaseMemoryWhenIdle({
    signal: controller.signal,
    clock,
    heap,
    busyMs: () => {
      const more = extra?.()
      const all = busy + (more?.busy ?? 0)
      if (more !== undefined) more.busy = 0
      busy = 0
      return all
    },
    collect: async (kind) => {
      onCollect?.()
      kinds.push(kind)
    },
    ...(onCollected !== undefined && { onCollected }),
    ...(onError !== undefined && { onError }),
  })
  const seconds = async (...loads: number[]) => {
    for (const load of loads) {
      busy = load
      await clock.advance(1_000)
    }
  }
  return { clock, seconds, kinds, collections: () => kinds.filter((kind) => kind !== 'nursery').length, stop: () => controller.abort() }
}
