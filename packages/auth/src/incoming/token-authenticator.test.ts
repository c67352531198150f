import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { type FakeProvider, KEYS, type SigningKey, signingKey, startFakeProvider } from './testing/fake-provider.ts'

let key: SigningKey
let idp: FakeProvider

beforeAll(async () => {
  key = await signingKey('k')
  idp = await startFakeProvider(key)
})
afterAll(() => idp[Symbol.asyncDispose]())

describe('the header', () => {
  it.each<[string | undefined, string]>([
    [undefined, 'missing'],
    ['', 'missing'],
    ['Bearer', 'malformed'],
    ['Bearer ', 'malformed'],
    ['Bearer  ', 'malformed'],
    ['Basic dTpw', 'malformed'],
    ['BearerX abc', 'malformed'],
    ['Bearer a b', 'malformed'],
    ['Bearer a,b', 'malformed'],
    ['Bearer tökén', 'malformed'],
    ['Bearer =', 'malformed'],
    [' Bearer abc', 'malformed'],
  ])('%j is %s', (header, kind) => {
    expect(idp.authenticator().authenticate(header)).toEqual({
      ok: false,
      problem: { kind, code: 'invalid_request', text: 'missing or malformed authorization header' },
    })
  })

  it('may spell the scheme as it likes', async () => {
    const token = await idp.token()
    for (const scheme of ['Bearer', 'bearer', 'BEARER', 'Bearer  ']) {
      const result = await idp.authenticator().authenticate(`${scheme} ${token}`)
      expect(result.ok, scheme).toBe(true)
    }
  })

  it('of a megabyte is turned down without being read', () => {
    const header = `Bearer ${'a'.repeat(1 << 20)}`
    expect(idp.authenticator().authenticate(header)).toMatchObject({ ok: false, problem: { kind: 'rejected', code: 'invalid_token' } })
    expect(idp.authenticator().authenticate(' '.repeat(1 << 20))).toMatchObject({ ok: false, problem: { kind: 'malformed' } })
  })
})

describe('a verified token', () => {
  it('is known from then on, at once, and by the same identity', async () => {
    const auth = idp.authenticator()
    const header = `Bearer ${await idp.token()}`
    const first = auth.authenticate(header)
    expect(first).toBeInstanceOf(Promise)
    expect(auth.authenticate(header)).toBeInstanceOf(Promise)
    const result = await first
    expect(auth.authenticate(header)).toBe(result)
    expect(auth.stats).toMatchObject({ cached: 1, accepted: 2, rejected: 0 })
  })

  it('is forgotten at its end, to the second', async () => {
    const auth = idp.authenticator({ limits: { jwtCacheMs: 1e12 } })
    const token = await idp.token({ claims: { exp: idp.clock.now() / 1_000 + 100 } })
    expect(await auth.outcome(token)).toBe('accepted')
    await idp.clock.advance(99_999)
    expect(auth.authenticate(`Bearer ${token}`)).not.toBeInstanceOf(Promise)
    await idp.clock.advance(1)
    const again = auth.authenticate(`Bearer ${token}`)
    expect(again).toBeInstanceOf(Promise)
    await again // otherwise the next one joins it
    await idp.clock.advance(30_000)
    expect(await auth.outcome(token)).toBe('rejected')
  })

  it('is verified again after five minutes, also when the clock was set back', async () => {
    const auth = idp.authenticator()
    const token = await idp.token()
    await auth.outcome(token)
    idp.clock.jump(-600_000)
    expect(auth.authenticate(`Bearer ${token}`)).not.toBeInstanceOf(Promise)
    await idp.clock.advance(300_000)
    expect(await auth.outcome(token)).toBe('rejected') // issued in the future, by this clock
    idp.clock.jump(600_000)
    expect(await auth.outcome(token)).toBe('accepted')
  })

  it('ends at once when the clock jumps past its end', async () => {
    const auth = idp.authenticator()
    const token = await idp.token()
    expect(await auth.outcome(token)).toBe('accepted')
    idp.clock.jump(2 * 3_600_000)
    expect(await auth.outcome(token)).toBe('rejected')
    idp.clock.jump(-2 * 3_600_000)
  })

  it('does not take more memory than it may', async () => {
    const auth = idp.authenticator({ limits: { maxCached: 10, maxCachedChars: 5_000 } })
    for (let i = 0; i < 15; i++) await auth.outcome(await idp.token({ claims: { jti: `${i}` } }))
    expect(auth.stats.cached).toBe(10)
    await auth.outcome(await idp.token({ claims: { pad: 'x'.repeat(3_000) } }))
    expect(auth.stats.cached).toBeLessThan(6)
  })
})

describe('all at once', () => {
  it('a token is verified once for all who bring it, and keys are fetched once', async () => {
    await using own = await startFakeProvider(key)
    const auth = own.authenticator()
    const tokens = await Promise.all(Array.from({ length: 20 }, (_, i) => own.token({ claims: { jti: `${i}` } })))
    const outcomes = await Promise.all(tokens.flatMap((token) => Array.from({ length: 10 }, () => auth.outcome(token))))
    expect(new Set(outcomes)).toEqual(new Set(['accepted']))
    expect(own.hits(KEYS)).toBe(1)
  })
})

it('answers at once and asks no provider after it was closed', async () => {
  const auth = idp.authenticator()
  const waiting = auth.outcome(await idp.token({ claims: { jti: 'closing' } }))
  await auth[Symbol.asyncDispose]()
  expect(await waiting).toBe('unavailable')
  expect(await auth.outcome(await idp.token({ claims: { jti: 'closed' } }))).toBe('unavailable')
  expect(auth.problems).toEqual([])
})
