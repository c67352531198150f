import type { Identity } from '@thv/auth/incoming/authenticator'
import { reject } from '@thv/mcp/wire-errors'
import { describe, expect, it } from 'vitest'
import type { UpstreamToken, UsableToken } from '../credentials/upstream-token.ts'
import type { Caller, RequestContext } from '../pipeline/request-context.ts'
import { createUpstreamClaims } from './upstream-claims.ts'

const OWN: Identity['claims'] = { sub: 'a-1', scope: 'openid mcp', tsid: 'f1', exp: 5, groups: ['own'], aud: 'us' }
const identity: Identity = { subject: 'a-1', issuer: 'https://mcp.example.com', provider: 'own', claims: OWN }
const caller: Caller = { principal: 'p', identity, token: 't' }

function jwt(claims: unknown): string {
  const part = (value: unknown) => Buffer.from(JSON.stringify(value)).toString('base64url')
  return `${part({ alg: 'none' })}.${part(claims)}.x`
}

function seenWith(found: ReturnType<UpstreamToken['of']>) {
  const seen = createUpstreamClaims({ of: () => found, rejected: () => {} })
  return (of = caller) => seen({} as RequestContext, of)
}

const usable = (accessToken: string, idToken?: string): UsableToken => ({ kind: 'usable', accessToken, idToken })
const claims = (of: unknown) => (of as Caller).identity?.claims

describe('the claims that policies see of an upstream provider', () => {
  it('are those of its access token, and the scopes and the session are those of the client', () => {
    const seen = seenWith(usable(jwt({ sub: 'idp-7', groups: ['admins'], scope: 'all', tsid: 'other', exp: 9, act: { sub: 'x' } })))()
    expect(claims(seen)).toEqual({ sub: 'idp-7', groups: ['admins'], scope: 'openid mcp', tsid: 'f1', exp: 5, aud: 'us' })
    expect(seen).toMatchObject({ principal: 'p', token: 't', identity: { subject: 'a-1', issuer: identity.issuer } })
  })

  it.each<[string, UsableToken, readonly string[]]>([
    ['of the ID token where the access token is opaque', usable('opaque', jwt({ groups: ['id'] })), ['id']],
    ['of the ID token where the access token only looks like a JWT', usable('a.b.c', jwt({ groups: ['id'] })), ['id']],
    ['of the ID token where the access token holds no object', usable(jwt([1]), jwt({ groups: ['id'] })), ['id']],
    ['of the client where there is neither', usable('opaque'), ['own']],
  ])('are those %s', (_, found, groups) => {
    expect(claims(seenWith(found)())?.['groups']).toEqual(groups)
  })

  it('are looked up where they are not near', async () => {
    expect(claims(await seenWith(Promise.resolve(usable(jwt({ groups: ['admins'] }))))())?.['groups']).toEqual(['admins'])
  })

  it('are made once for each token of the client and of the provider', () => {
    const seen = seenWith(usable(jwt({ groups: ['admins'] })))
    expect(seen()).toBe(seen())
    expect(seen({ ...caller })).not.toBe(seen())
  })

  it('let nothing pass where there is no token', async () => {
    const challenge = reject('insufficient_scope')
    expect(seenWith(challenge)()).toBe(challenge)
    expect(await seenWith(Promise.resolve(challenge))()).toBe(challenge)
  })
})
