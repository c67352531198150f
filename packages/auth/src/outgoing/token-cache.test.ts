import { TestClock } from '@thv/kernel/clock'
import { describe, expect, it } from 'vitest'
import { purposeOf, TokenCache, tokenKey } from './token-cache.ts'
import { TokenRequestFailed } from './token-request-failed.ts'

function setUp(options: { maxEntries?: number; maxFailures?: number } = {}) {
  const clock = new TestClock()
  let asked = 0
  const grant = (expiresInMs?: number) => async () => ({ token: `t${++asked}`, expiresInMs })
  return { clock, cache: new TokenCache({ clock, ...options }), grant, asked: () => asked }
}

describe('the token cache', () => {
  it('asks once for 1,000 callers of one key', async () => {
    const { cache, grant, asked } = setUp()
    const results = await Promise.all(Array.from({ length: 1_000 }, () => cache.fetch('k', grant(600_000))))
    expect(asked()).toBe(1)
    expect(new Set(results)).toEqual(new Set([cache.get('k')]))
  })

  it.each<[string, number | undefined, number]>([
    ['until a minute before the end', 600_000, 540_000],
    ['at least half of its life', 80_000, 40_000],
    ['a minute when nothing is said', undefined, 60_000],
  ])('keeps a token %s', async (_, life, kept) => {
    const { clock, cache, grant } = setUp()
    await cache.fetch('k', grant(life))
    await clock.advance(kept - 1)
    expect(cache.get('k')).toMatchObject({ ok: true, value: 'Bearer t1' })
    await clock.advance(1)
    expect(cache.get('k')).toBeUndefined()
  })

  it('keeps a token no longer than the one it came from', async () => {
    const { clock, cache, grant } = setUp()
    await cache.fetch('k', grant(600_000), { subjectEnd: clock.now() + 10_000 })
    await clock.advance(10_000)
    expect(cache.get('k')).toBeUndefined()
  })

  it('does not keep one that is dead on arrival', async () => {
    const { cache, grant } = setUp()
    expect(await cache.fetch('k', grant(0))).toMatchObject({ ok: true })
    expect(cache.get('k')).toBeUndefined()
  })

  it('keeps refusals for 5 s, reports each once, and does not keep an outage of the endpoint', async () => {
    const { clock, cache } = setUp()
    const reported: string[] = []
    const failing = (kind: 'refused' | 'unavailable') =>
      cache.fetch(kind, async () => Promise.reject(new TokenRequestFailed(kind, kind, { scope: 'endpoint' })), {
        onFailure: ({ message }) => reported.push(message),
      })
    await Promise.all([failing('refused'), failing('refused'), failing('unavailable')])
    expect(reported).toEqual(['refused', 'unavailable'])
    expect(cache.get('unavailable')).toBeUndefined()
    await clock.advance(4_999)
    expect(cache.get('refused')).toMatchObject({ ok: false })
    await clock.advance(1)
    expect(cache.get('refused')).toBeUndefined()
  })

  it('holds so many entries, and drops the least recently used', async () => {
    const { cache, grant } = setUp({ maxEntries: 2 })
    await cache.fetch('a', grant())
    await cache.fetch('b', grant())
    cache.get('a')
    await cache.fetch('c', grant())
    expect(['a', 'b', 'c'].map((key) => cache.get(key) !== undefined)).toEqual([true, false, true])
    expect(cache.size).toBe(2)
  })

  it('does not let refusals push out the tokens of others, and holds so many of them', async () => {
    const { cache, grant } = setUp({ maxEntries: 2, maxFailures: 3 })
    await cache.fetch('a', grant(600_000))
    await cache.fetch('b', grant(600_000))
    for (let i = 0; i < 100; i++) await cache.fetch(`bad${i}`, async () => Promise.reject(new TokenRequestFailed('subject', 'no')))
    expect([cache.get('a'), cache.get('b')]).toMatchObject([{ ok: true }, { ok: true }])
    const kept = Array.from({ length: 100 }, (_, i) => cache.get(`bad${i}`)).filter((one) => one !== undefined)
    expect(kept).toHaveLength(3)
  })

  it('waits for each key by itself after an answer that was no token: longer every time, and from the start after a token', async () => {
    const { clock, cache, grant } = setUp()
    const fail = () => cache.fetch('k', async () => Promise.reject(new TokenRequestFailed('unavailable', '500')))
    const waits: number[] = []
    const waitOf = (key: string) => {
      const result = cache.get(key)
      return result?.ok === false ? (result.failure.retryAfterMs ?? 0) : 0
    }
    for (let i = 0; i < 7; i++) {
      await fail()
      waits.push(waitOf('k'))
      expect(cache.get('neighbor')).toBeUndefined()
      await clock.advance(waitOf('k'))
      expect(cache.get('k')).toBeUndefined()
    }
    const most = [1_000, 2_000, 4_000, 8_000, 16_000, 30_000, 30_000]
    for (const [i, wait] of waits.entries()) expect([wait >= (most[i] ?? 0) / 2, wait <= (most[i] ?? 0)]).toEqual([true, true])
    await cache.fetch('k', grant(0))
    await fail()
    expect(waitOf('k')).toBeLessThanOrEqual(1_000)
  })

  it('waits for as long as the endpoint asked for', async () => {
    const { clock, cache } = setUp()
    await cache.fetch('k', async () => Promise.reject(new TokenRequestFailed('unavailable', '429', { retryAfterMs: 20_000 })))
    await clock.advance(15_000)
    expect(cache.get('k')).toMatchObject({ ok: false, failure: { kind: 'unavailable', retryAfterMs: 5_000 } })
    await clock.advance(5_000)
    expect(cache.get('k')).toBeUndefined()
  })

  it('drops a rejected token, but not the newer one in its place, and not again at once', async () => {
    const { clock, cache, grant, asked } = setUp()
    await cache.fetch('k', grant(600_000))
    expect(cache.reject('k', 't1')).toBe(true)
    expect(cache.get('k')).toBeUndefined()
    await cache.fetch('k', grant(600_000))
    expect(cache.reject('k', 't1')).toBe(true) // a late answer to the old one
    expect(cache.get('k')).toMatchObject({ token: 't2' })
    expect(cache.reject('k', 't2')).toBe(false) // a backend that rejects everything costs the provider nothing
    await clock.advance(5_000)
    expect(cache.reject('k', 't2')).toBe(true)
    expect(asked()).toBe(2)
  })

  it('has keys that hold no token and differ in everything a token depends on', () => {
    const parts = [
      ['https://a.example.com', 'c', 'aud', ['x'], 'jwt'],
      ['https://b.example.com', 'c', 'aud', ['x'], 'jwt'],
      ['https://a.example.com', 'd', 'aud', ['x'], 'jwt'],
      ['https://a.example.com', 'c', undefined, ['x'], 'jwt'],
      ['https://a.example.com', 'c', 'aud', ['x', 'y'], 'jwt'],
      ['https://a.example.com', 'c', 'aud', ['x y'], 'jwt'],
      ['https://a.example.com', 'c', 'aud', ['x'], 'access_token'],
    ]
    const keys = parts.flatMap((of) => ['subject-1', 'subject-2'].map((subject) => tokenKey(purposeOf(of), subject)))
    expect(new Set(keys).size).toBe(14)
    expect(keys.join()).not.toContain('subject')
  })
})
