import { TestClock } from '@thv/kernel/clock'
import { CollectingLog } from '@thv/telemetry/testing/collecting-log'
import { describe, expect, it } from 'vitest'
import { checkHealth } from './health-checks.ts'
import type { Member } from './member.ts'

function start(intervalMs: number, isFresh: () => boolean = () => false) {
  const clock = new TestClock()
  const stop = new AbortController()
  const checks: number[] = []
  const member = {
    name: 'a',
    health: { isFresh },
    observed: async (run: () => Promise<void>) => await run(),
    shared: {
      ping: async ({ timeoutMs }: { timeoutMs: number }) => {
        checks.push(timeoutMs)
        throw new Error('away')
      },
    },
  } as unknown as Member
  const settings = { intervalMs }
  const log = new CollectingLog()
  const running = checkHealth(member, { clock, log, settings: () => ({ ...settings, timeoutMs: 500 }) }, stop.signal)
  const end = async () => {
    stop.abort()
    await running
  }
  return { clock, checks, settings, log, end }
}

describe('health checks', () => {
  // Each interval is up to a tenth shorter, so that not all backends are asked at once.
  it('[002-175] come once per configured interval, and go on after failures', async () => {
    const { clock, checks, log, end } = start(10_000)
    for (let i = 0; i < 50; i++) await clock.advance(1_000)
    expect(checks).toEqual([500, 500, 500, 500, 500])
    expect(log.lines.length).toBe(5)
    await end()
  })

  it('[002-175] follow a changed interval', async () => {
    const { clock, checks, settings, end } = start(10_000)
    for (let i = 0; i < 10; i++) await clock.advance(1_000)
    settings.intervalMs = 60_000
    const before = checks.length
    for (let i = 0; i < 75; i++) await clock.advance(1_000)
    expect(checks.length - before).toBeLessThanOrEqual(2)
    expect(checks.length).toBeGreaterThan(before)
    await end()
  })

  it('are left out while calls prove the backend alive', async () => {
    const { clock, checks, end } = start(10_000, () => true)
    for (let i = 0; i < 50; i++) await clock.advance(1_000)
    expect(checks).toEqual([])
    await end()
  })
})
