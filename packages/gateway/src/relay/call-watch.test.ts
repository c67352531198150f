import { TestClock } from '@thv/kernel/clock'
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { CallWatch, type WatchedCall } from './call-watch.ts'

class FakeCall implements WatchedCall {
  readonly startedAt: number
  lastActivityAt: number
  idleLimitMs = 1_000
  place = -1
  expired: string | undefined

  constructor(clock: TestClock) {
    this.startedAt = this.lastActivityAt = clock.monotonic()
  }

  expire(why: string): void {
    this.expired = why
  }
}

const LIMITS = { idleMs: 1_000, hardTimeoutMs: 10_000 }

describe('CallWatch', () => {
  it('ends a call that is silent, and not one that shows signs of life', async () => {
    const clock = new TestClock()
    const watch = new CallWatch(clock, LIMITS)
    const [silent, lively] = [new FakeCall(clock), new FakeCall(clock)]
    watch.add(silent)
    watch.add(lively)
    for (let i = 0; i < 6; i++) {
      await clock.advance(400)
      lively.lastActivityAt = clock.monotonic()
    }
    expect([silent.expired, lively.expired]).toEqual(['silent', undefined])
    expect(watch.size).toBe(1)
    watch.close()
  })

  it('ends a call that lasts too long, however lively, and one that may be silent too', async () => {
    const clock = new TestClock()
    const watch = new CallWatch(clock, LIMITS)
    const patient = new FakeCall(clock)
    patient.idleLimitMs = Infinity
    watch.add(patient)
    await clock.advance(9_500)
    expect(patient.expired).toBeUndefined()
    await clock.advance(1_000)
    expect(patient.expired).toBe('too long')
    watch.close()
  })

  it('has no timer when there is nothing to watch', async () => {
    const clock = new TestClock()
    const watch = new CallWatch(clock, LIMITS)
    const call = new FakeCall(clock)
    watch.add(call)
    watch.delete(call)
    watch.delete(call)
    await clock.advance(1_000)
    expect(clock.pending).toBe(0)
    await clock.advance(5_000)
    expect(call.expired).toBeUndefined()
  })

  it('holds exactly what was added and not taken away, in any order', () => {
    fc.assert(
      fc.property(fc.array(fc.nat(9), { maxLength: 60 }), (steps) => {
        const clock = new TestClock()
        const watch = new CallWatch(clock, LIMITS)
        const calls = Array.from({ length: 10 }, () => new FakeCall(clock))
        const inside = new Set<FakeCall>()
        for (const step of steps) {
          const call = calls[step]
          if (call === undefined) continue
          if (inside.delete(call)) watch.delete(call)
          else {
            inside.add(call)
            watch.add(call)
          }
          expect(watch.size).toBe(inside.size)
        }
        for (const call of inside) watch.delete(call)
        expect(watch.size).toBe(0)
        watch.close()
      }),
    )
  })
})
