import { TestClock } from '@thv/kernel/clock'
import { expect, it } from 'vitest'
import { CrashBackoff } from './crash-backoff.ts'
import { KUBELET_TIMINGS } from './node-env.ts'

it('starts at once, then waits 10 s doubling to 5 min, and begins again after a long run', async () => {
  const clock = new TestClock()
  const backoff = new CrashBackoff(clock, KUBELET_TIMINGS)
  const delays: number[] = []
  for (let run = 0; run < 8; run++) {
    const delay = backoff.next()
    delays.push(delay / 1_000)
    await clock.advance(delay)
  }
  expect(delays).toEqual([0, 10, 20, 40, 80, 160, 300, 300])
  await clock.advance(600_001)
  expect(backoff.next()).toBe(0)
})
