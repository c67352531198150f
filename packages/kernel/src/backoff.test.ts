import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { createBackoff } from './backoff.ts'

describe('createBackoff', () => {
  it('grows by the factor up to the cap', () => {
    const backoff = createBackoff({ baseMs: 100, maxMs: 1_000, factor: 3, jitter: 0 })
    expect([backoff.next(), backoff.next(), backoff.next(), backoff.next()]).toEqual([100, 300, 900, 1_000])
  })

  it('doubles, and takes up to half of the delay away, unless told otherwise', () => {
    const shortest = createBackoff({ baseMs: 100, maxMs: 1_000, random: () => 1 })
    expect([shortest.next(), shortest.next(), shortest.next()]).toEqual([50, 100, 200])
  })

  it('counts failures and starts again after a reset', () => {
    const backoff = createBackoff({ baseMs: 1, maxMs: 100, jitter: 0 })
    expect(backoff.failures).toBe(0)
    backoff.next()
    backoff.next()
    expect(backoff.failures).toBe(2)
    backoff.reset()
    expect(backoff.failures).toBe(0)
    expect(backoff.next()).toBe(1)
  })

  it('stays within [(1 - jitter) * d, d] after any number of failures', () => {
    const options = fc.record({
      baseMs: fc.double({ min: 0, max: 1e6, noNaN: true }),
      spread: fc.double({ min: 0, max: 1e9, noNaN: true }),
      factor: fc.double({ min: 1, max: 1e3, noNaN: true }),
      jitter: fc.double({ min: 0, max: 1, noNaN: true }),
      seed: fc.infiniteStream(fc.double({ min: 0, max: 1, maxExcluded: true, noNaN: true })),
    })
    fc.assert(
      fc.property(options, ({ baseMs, spread, factor, jitter, seed }) => {
        const maxMs = baseMs + spread
        const backoff = createBackoff({ baseMs, maxMs, factor, jitter, random: () => seed.next().value })
        let bound = baseMs
        for (let i = 0; i < 50; i++) {
          const delay = backoff.next()
          expect(delay).toBeGreaterThanOrEqual(bound * (1 - jitter))
          expect(delay).toBeLessThanOrEqual(bound)
          bound = Math.min(maxMs, bound * factor)
        }
      }),
    )
  })

  it.each([
    { baseMs: -1, maxMs: 1 },
    { baseMs: 2, maxMs: 1 },
    { baseMs: Number.NaN, maxMs: 1 },
    { baseMs: 1, maxMs: Number.POSITIVE_INFINITY },
    { baseMs: 1, maxMs: 2, factor: 0.5 },
    { baseMs: 1, maxMs: 2, factor: Number.NaN },
    { baseMs: 1, maxMs: 2, jitter: 1.1 },
    { baseMs: 1, maxMs: 2, jitter: -0.1 },
  ])('refuses %j', (options) => {
    expect(() => createBackoff(options)).toThrow(RangeError)
  })
})
