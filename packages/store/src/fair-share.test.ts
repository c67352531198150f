import { describe, expect, it } from 'vitest'
import { mayHoldMore } from './fair-share.ts'

/** Parties take one after the other until none may take more. */
function fill(parties: number, limit: number): number[] {
  const held = Array.from({ length: parties }, () => 0)
  let used = 0
  for (let isMoving = true; isMoving; ) {
    isMoving = false
    for (const [party, own] of held.entries()) {
      if (!mayHoldMore({ own, used, limit })) continue
      held[party] = own + 1
      used++
      isMoving = true
    }
  }
  return held
}

describe('a share that follows what is free', () => {
  it('gives a single party three quarters', () => {
    expect(fill(1, 1_000)).toEqual([750])
  })

  it('gives parties that want the same the same, and nearly all together', () => {
    const held = fill(4, 1_000)
    expect(Math.max(...held) - Math.min(...held)).toBeLessThanOrEqual(1)
    expect(held.reduce((sum, own) => sum + own)).toBeGreaterThan(900)
    expect(fill(1_000, 1_000)).toEqual(Array.from({ length: 1_000 }, () => 1))
  })

  it('leaves something to newcomers, whatever those before them took', () => {
    let used = 0
    for (let party = 0; party < 5; party++) {
      let own = 0
      for (; mayHoldMore({ own, used, limit: 1_000 }); own++) used++
      expect(own).toBeGreaterThan(0)
    }
    expect(used).toBeLessThanOrEqual(1_000)
    expect(mayHoldMore({ own: 0, used: 1_000, limit: 1_000 })).toBe(false)
  })
})
