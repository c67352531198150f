import { createOutbound, type Outbound } from '@thv/http/outbound/outbound'
import { TestClock } from '@thv/kernel/clock'
import { OIDC_PATHS } from '@thv/testkit/oidc/oidc-configuration'
import { type OidcServer, startOidcServer } from '@thv/testkit/oidc/oidc-server'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { createAuthenticator, type TokenAuthenticator } from './token-authenticator.ts'

let idp: OidcServer
let outbound: Outbound

beforeAll(async () => {
  idp = await startOidcServer()
  outbound = createOutbound()
})
afterAll(async () => {
  await outbound.close()
  await idp[Symbol.asyncDispose]()
})

function authenticator(clock = new TestClock(Date.now())): TokenAuthenticator & { kind(token: string): Promise<string> } {
  const introspection = { url: idp.introspectionUrl, clientId: idp.clientId, clientSecret: idp.clientSecret }
  const auth = createAuthenticator({
    providers: [{ name: 'oidc', issuer: idp.issuer, audience: 'tests', introspection, allowPrivateIP: true }],
    outbound,
    clock,
  })
  const kind = async (token: string) => {
    const result = await auth.authenticate(`Bearer ${token}`)
    return result.ok ? 'accepted' : result.problem.kind
  }
  return Object.defineProperty(Object.create(auth), 'kind', { value: kind })
}

describe('with an independent OpenID provider', () => {
  it('takes readable tokens', async () => {
    const auth = authenticator()
    const token = await idp.token({ claims: { sub: 'ada', team: ['a'] } })
    expect(token.split('.')).toHaveLength(3)
    expect(await auth.authenticate(`Bearer ${token}`)).toMatchObject({ ok: true, identity: { subject: 'ada', claims: { team: ['a'] } } })
    expect(await auth.kind(await idp.token({ audience: 'others' }))).toBe('rejected')
  })

  it('takes opaque tokens, until they are revoked', async () => {
    const clock = new TestClock(Date.now())
    const auth = authenticator(clock)
    const token = await idp.token({ format: 'opaque', claims: { sub: 'ada', team: 'a' } })
    expect(token).not.toContain('.')
    expect(await auth.authenticate(`Bearer ${token}`)).toMatchObject({ ok: true, identity: { subject: 'ada', claims: { team: 'a' } } })
    expect(await auth.kind(await idp.token({ format: 'opaque', audience: 'others' }))).toBe('rejected')
    expect(await auth.kind('never-issued')).toBe('rejected')
    await idp.revoke(token)
    await clock.advance(60_000)
    expect(await auth.kind(token)).toBe('rejected')
  })

  it('follows a rotation', async () => {
    const auth = authenticator()
    const before = await idp.token()
    expect(await auth.kind(before)).toBe('accepted')
    idp.rotateKeys({ keepOld: true })
    expect(await auth.kind(await idp.token())).toBe('accepted')
    idp.rotateKeys()
    expect(await auth.kind(await idp.token())).toBe('accepted')
    expect(await authenticator().kind(before)).toBe('rejected')
  })

  it('survives its faults', async () => {
    const clock = new TestClock(Date.now())
    const auth = authenticator(clock)
    const tokens = await Promise.all(Array.from({ length: 4 }, () => idp.token()))
    for (const [i, fault] of (['down', 'wrong-issuer', 'garbage-keys'] as const).entries()) {
      idp.fault = fault
      expect(await auth.kind(tokens[i] ?? ''), fault).toBe('unavailable')
      await clock.advance(10_000)
    }
    idp.fault = undefined
    expect(await auth.kind(tokens[3] ?? '')).toBe('accepted')
    expect(idp.hits(OIDC_PATHS.jwks)).toBeGreaterThan(0)
  })
})
