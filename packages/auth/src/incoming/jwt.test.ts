import { createHmac, generateKeyPairSync, KeyObject, sign } from 'node:crypto'
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import {
  answerJson,
  DISCOVERY,
  type FakeProvider,
  KEYS,
  rawToken,
  type SigningKey,
  signingKey,
  startFakeProvider,
  type TestedAuthenticator,
} from './testing/fake-provider.ts'

let key: SigningKey
let rsa: SigningKey
let idp: FakeProvider
let auth: TestedAuthenticator

beforeAll(async () => {
  key = await signingKey('k1')
  rsa = await signingKey('rsa', 'RS256')
  idp = await startFakeProvider(key)
})
afterAll(() => idp[Symbol.asyncDispose]())
beforeEach(() => {
  idp.routes.clear()
  idp.jwks = { keys: [key.jwk] }
  idp.backend.requests.length = 0
  auth = idp.authenticator()
})

describe('a good JWT', () => {
  it('is accepted, with the identity it names', async () => {
    const token = await idp.token({ claims: { preferred_username: 'ada.l', email: 'ada@example.com', groups: ['a'] } })
    const result = await auth.authenticate(`Bearer ${token}`)
    expect(result).toMatchObject({
      ok: true,
      identity: { subject: 'ada', issuer: idp.issuer, provider: 'fake', displayName: 'ada.l', claims: { groups: ['a'] } },
    })
    expect(result.ok && result.identity.expiresAt).toBe(idp.clock.now() + 3_600_000)
  })

  it.each(['RS256', 'PS256', 'ES384', 'ES512', 'EdDSA', 'Ed25519'])('may be signed with %s', async (alg) => {
    const other = await signingKey('other', alg)
    idp.jwks = { keys: [key.jwk, other.jwk] }
    expect(await auth.outcome(await idp.token({ key: other }))).toBe('accepted')
  })

  it.each([undefined, 'JWT', 'at+jwt', 'application/at+jwt', 'AT+JWT'])('may be of type %s', async (typ) => {
    expect(await auth.outcome(await idp.token({ header: { typ } }))).toBe('accepted')
  })

  it('may have several audiences, and be without kid', async () => {
    expect(await auth.outcome(await idp.token({ claims: { aud: ['x', 'tests'] }, header: { kid: undefined } }))).toBe('accepted')
  })

  it('may be off by half a minute', async () => {
    const now = idp.clock.now() / 1_000
    expect(await auth.outcome(await idp.token({ claims: { exp: now - 25 } }))).toBe('accepted')
    expect(await auth.outcome(await idp.token({ claims: { nbf: now + 25, iat: now + 25 } }))).toBe('accepted')
  })

  it('is read with the key that fits when two keys share an id', async () => {
    const twin = await signingKey('k1')
    idp.jwks = { keys: [twin.jwk, key.jwk] }
    expect(await auth.outcome(await idp.token())).toBe('accepted')
  })
})

describe('a JWT is rejected', () => {
  const now = () => idp.clock.now() / 1_000
  it.each<[string, () => Readonly<Record<string, unknown>>]>([
    ['after its end', () => ({ exp: now() - 31 })],
    ['without an end', () => ({ exp: undefined })],
    ['with an end that is no number', () => ({ exp: '9999999999' })],
    ['before its time', () => ({ nbf: now() + 60 })],
    ['when it comes from the future', () => ({ iat: now() + 60 })],
    ['for another audience', () => ({ aud: 'others' })],
    ['for no audience', () => ({ aud: undefined })],
    ['for an audience that only begins like ours', () => ({ aud: 'tests2' })],
    ['of another issuer', () => ({ iss: 'https://elsewhere.example' })],
    ['of an issuer that differs in a slash', () => ({ iss: `${idp.issuer}/` })],
    ['without a subject', () => ({ sub: undefined })],
    ['with an empty subject', () => ({ sub: '' })],
    ['with a subject that is no text', () => ({ sub: { a: 1 } })],
  ])('%s', async (_name, claims) => {
    expect(await auth.outcome(await idp.token({ claims: claims() }))).toBe('rejected')
    expect(idp.hits(KEYS)).toBe(0) // found out without asking for keys
  })

  it('whatever is wrong with its signature', async () => {
    const token = await idp.token()
    const [head, body, signature = ''] = token.split('.')
    const forged = Buffer.from(JSON.stringify({ iss: idp.issuer, aud: 'tests', sub: 'root', exp: now() + 60 })).toString('base64url')
    expect(await auth.outcome(`${head}.${forged}.${signature}`)).toBe('rejected')
    expect(await auth.outcome(`${head}.${body}.`)).toBe('rejected')
    expect(await auth.outcome(`${head}.${body}.${'A'.repeat(signature.length)}`)).toBe('rejected')
    const stranger = await signingKey('k1')
    expect(await auth.outcome(await idp.token({ key: stranger }))).toBe('rejected')
  })

  it('when it is not signed, or with a shared secret', async () => {
    const claims = { iss: idp.issuer, aud: 'tests', sub: 'root', exp: now() + 60 }
    for (const alg of ['none', 'None', 'NONE', '']) expect(await auth.outcome(rawToken({ alg, kid: 'k1' }, claims))).toBe('rejected')
    // Algorithm confusion: the public key, which everybody knows, used as the secret.
    idp.jwks = { keys: [rsa.jwk, { kty: 'oct', kid: 'secret', k: 'c2VjcmV0', alg: 'HS256' }] }
    for (const [kid, secret] of [
      ['rsa', JSON.stringify(rsa.jwk)],
      ['secret', 'secret'],
    ] as const) {
      const [head, body] = rawToken({ alg: 'HS256', kid }, claims).split('.')
      const mac = createHmac('sha256', secret).update(`${head}.${body}`).digest('base64url')
      expect(await auth.outcome(`${head}.${body}.${mac}`)).toBe('rejected')
    }
  })

  it('when its algorithm is not that of the key', async () => {
    const token = signedByHand({ alg: 'RS512', kid: 'rsa' }, goodClaims(), { key: rsa, hash: 'sha512' })
    idp.jwks = { keys: [{ ...rsa.jwk, alg: undefined }] }
    expect(await auth.outcome(token)).toBe('accepted')
    idp.jwks = { keys: [rsa.jwk] } // says RS256
    expect(await idp.authenticator().outcome(token)).toBe('rejected')
  })

  it('with a key that it brings itself, or that is too weak', async () => {
    const own = await signingKey('mine')
    expect(await auth.outcome(await idp.token({ key: own, header: { jwk: own.jwk } }))).toBe('rejected')
    const weak = generateKeyPairSync('rsa', { modulusLength: 1_024 })
    idp.jwks = { keys: [key.jwk, { ...weak.publicKey.export({ format: 'jwk' }), kid: 'weak' }] }
    const [head, body] = rawToken({ alg: 'RS256', kid: 'weak' }, goodClaims()).split('.')
    const signature = sign('sha256', Buffer.from(`${head}.${body}`), weak.privateKey).toString('base64url')
    expect(await auth.outcome(`${head}.${body}.${signature}`)).toBe('rejected')
  })

  it('without following what its header points to', async () => {
    const header = { jku: `${idp.issuer}/evil`, x5u: `${idp.issuer}/evil`, kid: '../../evil?x=' }
    expect(await auth.outcome(await idp.token({ key: await signingKey('evil'), header }))).toBe('rejected')
    expect(idp.backend.requests.map(({ url }) => url)).not.toContainEqual(expect.stringContaining('evil'))
  })

  it.each(['logout+jwt', 'dpop+jwt', 1, ''])('of type %s', async (typ) => {
    expect(await auth.outcome(signedByHand({ alg: 'ES256', kid: 'k1', typ }, goodClaims()))).toBe('rejected')
    expect(auth.reasons).toEqual(['of another type'])
  })

  it('with extensions that we do not know (crit), b64 among them', async () => {
    expect(await auth.outcome(signedByHand({ alg: 'ES256', kid: 'k1' }, goodClaims()))).toBe('accepted')
    for (const header of [{ crit: ['b64'], b64: false }, { crit: ['exp'], exp: 1 }, { crit: ['x'], x: 1 }, { crit: [] }, { crit: 'x' }])
      expect(await auth.outcome(signedByHand({ alg: 'ES256', kid: 'k1', ...header }, goodClaims())), JSON.stringify(header)).toBe(
        'rejected',
      )
  })

  it('when it is no JWT at all, encrypted, or far too long', async () => {
    for (const token of ['abc', 'a.b', 'a.b.c', 'a.b.c.d.e', '..', '.', rawToken([], {}), rawToken({ alg: 5 }, {}), '%%%'])
      expect(await auth.outcome(token)).toMatch(/rejected|malformed/)
    expect(await auth.outcome('a'.repeat(1 << 20))).toBe('rejected')
    expect(await auth.outcome(await idp.token({ claims: { pad: 'x'.repeat(20_000) } }))).toBe('rejected')
    expect(idp.backend.requests).toEqual([])
  })
})

function goodClaims(): object {
  return { iss: idp.issuer, aud: 'tests', sub: 'x', exp: idp.clock.now() / 1_000 + 60 }
}

/** A right signature under any header, also one that jose would not sign. */
function signedByHand(header: object, claims: object, { key: signer = key, hash = 'sha256' } = {}): string {
  const [head, body] = rawToken(header, claims).split('.')
  const signature = sign(hash, Buffer.from(`${head}.${body}`), { key: KeyObject.from(signer.privateKey), dsaEncoding: 'ieee-p1363' })
  return `${head}.${body}.${signature.toString('base64url')}`
}

describe('several providers', () => {
  it('are chosen by issuer, then tried in order', async () => {
    const common = { issuer: idp.issuer, allowPrivateIP: true }
    const providers = [
      { name: 'elsewhere', issuer: 'https://idp.invalid', audience: 'tests' },
      { name: 'first', ...common, audience: 'one' },
      { name: 'second', ...common, audience: 'two' },
    ]
    const several = idp.authenticator({ providers })
    const result = await several.authenticate(`Bearer ${await idp.token({ claims: { aud: 'two' } })}`)
    expect(result.ok && result.identity.provider).toBe('second')
    expect(await several.outcome(await idp.token({ claims: { aud: 'three' } }))).toBe('rejected')
    expect(several.problems).toEqual([]) // the unreachable one was never asked
  })

  it('do not vouch for each other: the key of one does not sign for the other', async () => {
    const otherKey = await signingKey('k1')
    await using other = await startFakeProvider(otherKey)
    const both = [idp, other].map(({ issuer }, i) => ({ name: `p${i}`, issuer, audience: 'tests', allowPrivateIP: true }))
    const two = idp.authenticator({ providers: both })
    expect(await two.outcome(await idp.token())).toBe('accepted')
    expect(await two.outcome(await other.token())).toBe('accepted')
    expect(await two.outcome(await other.token({ claims: { iss: idp.issuer } }))).toBe('rejected')
  })
})

it('takes the keys from RFC 8414 metadata when there is no OpenID document', async () => {
  idp.routes.set(DISCOVERY, (_request, response) => void response.writeHead(404).end())
  idp.routes.set('/.well-known/oauth-authorization-server', (_request, response) =>
    answerJson(response, { issuer: idp.issuer, jwks_uri: `${idp.issuer}${KEYS}` }),
  )
  expect(await auth.outcome(await idp.token())).toBe('accepted')
})
