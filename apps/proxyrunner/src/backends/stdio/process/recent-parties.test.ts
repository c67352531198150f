import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { RecentParties } from './recent-parties.ts'

describe('RecentParties', () => {
  it('knows no party at first', () => {
    expect(new RecentParties().hasOther('a', 0)).toBe(false)
  })

  it('answers as a full list would', () => {
    const step = fc.record({ party: fc.constantFrom('a', 'b', 'c'), passes: fc.nat(40) })
    fc.assert(
      fc.property(fc.array(step, { maxLength: 20 }), fc.constantFrom('a', 'b', 'c', 'd'), fc.nat(120), (steps, asked, later) => {
        const recent = new RecentParties()
        const all: { party: string; until: number }[] = []
        let now = 0
        for (const { party, passes } of steps) {
          now += passes
          recent.add(party, now + 60)
          all.push({ party, until: now + 60 })
        }
        now += later
        expect(recent.hasOther(asked, now)).toBe(all.some(({ party, until }) => party !== asked && now < until))
      }),
    )
  })
})
