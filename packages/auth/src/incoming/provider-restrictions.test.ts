import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { answerJson, DISCOVERY, type FakeProvider, KEYS, type SigningKey, signingKey, startFakeProvider } from './testing/fake-provider.ts'

let key: SigningKey
let idp: FakeProvider

beforeAll(async () => {
  key = await signingKey('k')
  idp = await startFakeProvider(key)
})
afterAll(() => idp[Symbol.asyncDispose]())

describe('the subject', () => {
  it.each([
    ['system:serviceaccount:team:agent', 'accepted'],
    ['system:serviceaccount:team:agent2', 'rejected'],
    ['system:serviceaccount:team:', 'rejected'],
  ])('%s is %s where one account is required', async (sub, outcome) => {
    const auth = idp.authenticator({ provider: { requiredSubject: 'system:serviceaccount:team:agent' } })
    expect(await auth.outcome(await idp.token({ claims: { sub } }))).toBe(outcome)
  })

  it.each([
    ['system:serviceaccount:team:agent', 'accepted'],
    ['system:serviceaccount:team', 'rejected'],
    ['system:serviceaccount:team2:agent', 'rejected'],
    ['system:serviceaccount:team:*', 'accepted'],
  ])('%s is %s where a namespace is required', async (sub, outcome) => {
    const auth = idp.authenticator({ provider: { requiredSubject: 'system:serviceaccount:team:*' } })
    expect(await auth.outcome(await idp.token({ claims: { sub } }))).toBe(outcome)
  })

  it.each(['', ' \u0000', 'a\nb', 'a\u007fb', 'x'.repeat(1_025), 7, null, ['a']])('%j is none', async (sub) => {
    const auth = idp.authenticator()
    expect(await auth.outcome(await idp.token({ claims: { sub } }))).toBe('rejected')
    expect(auth.reasons).toEqual([expect.stringMatching(/^with(out)? a subject/)])
  })
})

describe('private addresses', () => {
  it('may be allowed for the keys alone', async () => {
    const token = await idp.token()
    const keysOnly = { allowPrivateIP: false, jwksAllowPrivateIP: true }
    expect(await idp.authenticator({ provider: { ...keysOnly, jwksUrl: `${idp.issuer}${KEYS}` } }).outcome(token)).toBe('accepted')
    expect(await idp.authenticator({ provider: keysOnly }).outcome(token)).toBe('unavailable') // discovery is not the keys
    const neither = { allowPrivateIP: false, jwksUrl: `${idp.issuer}${KEYS}` }
    expect(await idp.authenticator({ provider: neither }).outcome(token)).toBe('unavailable')
  })
})

describe('an issuer that is discovered', () => {
  const NAMED = 'https://kubernetes.default.svc.cluster.local'

  it('is the one that the document names; tokens of any other are rejected', async () => {
    await using cluster = await startFakeProvider(key)
    cluster.routes.set(DISCOVERY, (_request, response) => answerJson(response, { issuer: NAMED, jwks_uri: 'https://192.0.2.1/keys' }))
    const auth = cluster.authenticator({ provider: { discoversIssuer: true, jwksUrl: `${cluster.issuer}${KEYS}` } })
    const result = await auth.authenticate(`Bearer ${await cluster.token({ claims: { iss: NAMED } })}`)
    expect(result).toMatchObject({ ok: true, identity: { issuer: NAMED, subject: 'ada' } })
    expect(await auth.outcome(await cluster.token({ claims: { iss: cluster.issuer } }))).toBe('rejected')
    expect(await auth.outcome(await cluster.token({ claims: { iss: 'https://elsewhere.example' } }))).toBe('rejected')
    expect([cluster.hits(DISCOVERY), cluster.hits(KEYS)]).toEqual([1, 1])
  })

  it.each([{ jwks_uri: 'https://192.0.2.1/keys' }, { issuer: '', jwks_uri: 'x' }, { issuer: 7, jwks_uri: 'x' }])(
    'needs a document that names one: %j',
    async (document) => {
      await using cluster = await startFakeProvider(key)
      cluster.routes.set(DISCOVERY, (_request, response) => answerJson(response, document))
      const auth = cluster.authenticator({ provider: { discoversIssuer: true, jwksUrl: `${cluster.issuer}${KEYS}` } })
      expect(await auth.outcome(await cluster.token({ claims: { iss: NAMED } }))).toBe('unavailable')
    },
  )
})
