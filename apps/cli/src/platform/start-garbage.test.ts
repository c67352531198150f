import { execFile } from 'node:child_process'
import { promisify } from 'node:util'
import { TestClock } from '@thv/kernel/clock'
import { ThvError } from '@thv/kernel/errors'
import { expect, it } from 'vitest'
import { collectStartGarbage } from './start-garbage.ts'

it('collects once, after the quiet seconds on end that were asked for', async () => {
  const clock = new TestClock()
  const loads = [0.9, 0.1, 0.8, 0.1, 0.2]
  let collected = 0
  const collect = async () => void collected++
  const done = collectStartGarbage({ quietSeconds: 2, signal: undefined, clock, load: () => loads.shift() ?? 0, collect })
  for (let second = 1; second <= 4; second++) await clock.advance(1_000)
  expect(collected).toBe(0)
  await clock.advance(1_000)
  await done
  expect(collected).toBe(1)
  expect(clock.pending).toBe(0)
})

it('leaves a process alone that is never quiet, and one that is told to stop', async () => {
  const clock = new TestClock()
  const collect = async () => expect.unreachable()
  const busy = collectStartGarbage({ quietSeconds: 1, signal: undefined, clock, load: () => 1, collect })
  for (let second = 0; second < 120; second++) await clock.advance(1_000)
  await busy
  const stop = new AbortController()
  const stopped = collectStartGarbage({ quietSeconds: 1, signal: stop.signal, clock, load: () => 0, collect })
  stop.abort(new ThvError('aborted', 'interrupted'))
  await stopped
  expect(clock.pending).toBe(0)
})

it('really shrinks the heap', async () => {
  // In a process of its own: here it would depend on the other tests, and they on it.
  const program = `
    import { getHeapSpaceStatistics } from 'node:v8'
    import { collectStartGarbage } from ${JSON.stringify(new URL('start-garbage.ts', import.meta.url))}
    const nursery = () => getHeapSpaceStatistics().find(({ space_name: name }) => name === 'new_space').physical_space_size
    for (let round = 0; round < 40; round++) JSON.parse(JSON.stringify(Array.from({ length: 4_000 }, (_, index) => ({ index }))))
    const before = nursery()
    await collectStartGarbage({ quietSeconds: 1, signal: undefined, load: () => 0, clock: { sleep: async () => {} } })
    console.log(JSON.stringify({ before, after: nursery(), isExposed: 'gc' in globalThis }))`
  const { stdout } = await promisify(execFile)(process.execPath, ['--input-type=module', '--eval', program])
  const { before, after, isExposed } = JSON.parse(stdout) as { before: number; after: number; isExposed: boolean }
  expect(after).toBeLessThan(before / 2)
  expect(isExposed).toBe(false)
})
