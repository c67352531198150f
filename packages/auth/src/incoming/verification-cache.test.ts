import { TestClock } from '@thv/kernel/clock'
import fc from 'fast-check'
import { expect, it } from 'vitest'
import { createVerificationCache, tokenDigest } from './verification-cache.ts'

it('never gives out what is stale, expired or too much, whatever happens', async () => {
  const step = fc.oneof(
    fc.record({ do: fc.constant('set' as const), key: fc.nat(9), ttlMs: fc.nat(50), life: fc.option(fc.nat(50)), weight: fc.nat(40) }),
    fc.record({ do: fc.constant('get' as const), key: fc.nat(9) }),
    fc.record({ do: fc.constant('wait' as const), ms: fc.nat(20) }),
    fc.record({ do: fc.constant('jump' as const), ms: fc.integer({ min: -30, max: 30 }) }),
  )
  await fc.assert(
    fc.asyncProperty(fc.array(step, { maxLength: 60 }), async (steps) => {
      const clock = new TestClock()
      const cache = createVerificationCache<number>({ clock, maxEntries: 5, maxWeight: 100 })
      const model = new Map<number, { id: number; staleAt: number; expiresAt: number; weight: number }>()
      for (const [id, now] of steps.entries()) {
        if (now.do === 'wait') await clock.advance(now.ms)
        else if (now.do === 'jump') clock.jump(now.ms)
        else if (now.do === 'set') {
          const expiresAt = now.life === null ? Infinity : clock.now() + now.life
          cache.set(String(now.key), id, { ttlMs: now.ttlMs, expiresAt, weight: now.weight })
          model.set(now.key, { id, staleAt: clock.monotonic() + now.ttlMs, expiresAt, weight: now.weight })
        } else {
          const value = cache.get(String(now.key))
          const expected = model.get(now.key)
          if (value !== undefined) {
            expect(value).toBe(expected?.id)
            expect(clock.monotonic()).toBeLessThan(expected?.staleAt ?? 0)
            expect(clock.now()).toBeLessThan(expected?.expiresAt ?? 0)
          }
        }
        expect(cache.size).toBeLessThanOrEqual(5)
      }
    }),
  )
})

it('drops first what was not used for the longest time', () => {
  const cache = createVerificationCache<string>({ clock: new TestClock(), maxEntries: 2, maxWeight: 100 })
  const limits = { ttlMs: 1_000, weight: 1 }
  cache.set('a', 'A', limits)
  cache.set('b', 'B', limits)
  cache.get('a')
  cache.set('c', 'C', limits)
  expect(['a', 'b', 'c'].map((key) => cache.get(key))).toEqual(['A', undefined, 'C'])
  cache.set('heavy', 'H', { ttlMs: 1_000, weight: 99 })
  expect(['a', 'c', 'heavy'].map((key) => cache.get(key))).toEqual([undefined, 'C', 'H'])
})

it('is keyed by the SHA-256 of a token', () => {
  expect(tokenDigest('abc')).toBe('ungWv48Bz-pBQUDeXa4iI7ADYaOWF3qctBD_YfIAFa0')
})
