import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { eventually } from '@thv/http/testing/loopback'
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import { freshFor } from './key-set.ts'
import {
  answerJson,
  DISCOVERY,
  type FakeProvider,
  KEYS,
  OAUTH_METADATA,
  type SigningKey,
  signingKey,
  startFakeProvider,
} from './testing/fake-provider.ts'

let old: SigningKey
let young: SigningKey
let idp: FakeProvider

beforeAll(async () => {
  old = await signingKey('old')
  young = await signingKey('young')
})
beforeEach(async () => {
  idp = await startFakeProvider(old)
})
afterEach(() => idp[Symbol.asyncDispose]())

/** Different each time, so that the cache of verified tokens has no part in it. */
let serial = 0
const fresh = (key = old) => idp.token({ key, claims: { jti: String(serial++) } })

describe('rotation', () => {
  it('is noticed by the first token with an unknown key', async () => {
    const auth = idp.authenticator()
    expect(await auth.outcome(await fresh())).toBe('accepted')
    idp.jwks = { keys: [old.jwk, young.jwk] }
    expect(await auth.outcome(await fresh(young))).toBe('accepted')
    expect(await auth.outcome(await fresh(old))).toBe('accepted')
    expect(auth.stats.keyFetches).toBe(2)
  })

  it('ends tokens of a withdrawn key when the keys have aged and the verdict has been forgotten', async () => {
    const auth = idp.authenticator()
    const token = await fresh()
    expect(await auth.outcome(token)).toBe('accepted')
    idp.jwks = { keys: [young.jwk] }
    expect(await auth.outcome(token)).toBe('accepted')
    await idp.clock.advance(21 * 60_000) // more than twice the ten minutes that keys are fresh: asked before they are used
    expect(await auth.outcome(token)).toBe('rejected')
  })

  it('refreshes aged keys behind the request that finds them so', async () => {
    const auth = idp.authenticator()
    await auth.outcome(await fresh())
    await idp.clock.advance(11 * 60_000)
    let release = () => {}
    idp.routes.set(KEYS, async (_request, response) => {
      await new Promise<void>((resolve) => (release = resolve))
      answerJson(response, idp.jwks)
    })
    expect(await auth.outcome(await fresh())).toBe('accepted') // while the provider still thinks
    await eventually(() => idp.hits(KEYS) === 2)
    release()
  })
})

describe('unknown keys', () => {
  it('of the very first token cost one question, not two', async () => {
    expect(await idp.authenticator().outcome(await fresh(young))).toBe('rejected')
    expect(idp.hits(KEYS)).toBe(1)
  })

  it('make us ask a few times only, and one question serves all who wait', async () => {
    const auth = idp.authenticator()
    await auth.outcome(await fresh())
    const stranger = await signingKey('stranger')
    const tokens = await Promise.all(Array.from({ length: 300 }, (_, i) => idp.token({ key: stranger, header: { kid: `k${i}` } })))
    for (const token of tokens.slice(0, 100)) expect(await auth.outcome(token)).toBe('rejected')
    const outcomes = await Promise.all(tokens.slice(100).map((token) => auth.outcome(token)))
    expect(new Set(outcomes)).toEqual(new Set(['rejected']))
    expect(idp.hits(KEYS)).toBe(1 + 3)
    await idp.clock.advance(10_000)
    for (const token of tokens) await auth.outcome(token)
    expect(idp.hits(KEYS)).toBe(1 + 3 + 1)
    idp.jwks = { keys: [young.jwk] }
    await idp.clock.advance(10_000)
    expect(await auth.outcome(await fresh(young))).toBe('accepted')
  })

  it('are bounded also when ten thousand come over a minute', async () => {
    const auth = idp.authenticator()
    const good = await fresh()
    await auth.outcome(good)
    const [, body] = good.split('.')
    for (let i = 0; i < 10_000; i++) {
      const head = Buffer.from(JSON.stringify({ alg: 'ES256', kid: `${i}` })).toString('base64url')
      await auth.outcome(`${head}.${body}.AAAA`)
      if (i % 1_000 === 999) await idp.clock.advance(6_000)
    }
    expect(idp.hits(KEYS)).toBeLessThanOrEqual(1 + 3 + 6)
    expect(auth.stats.cached).toBe(1)
  })
})

describe('a provider that fails', () => {
  it('costs 503 with a time to retry, and is asked again only after it', async () => {
    idp.routes.set(DISCOVERY, (_request, response) => void response.writeHead(500).end())
    const auth = idp.authenticator()
    const result = await auth.authenticate(`Bearer ${await fresh()}`)
    expect(result).toMatchObject({ ok: false, problem: { kind: 'unavailable', code: 'temporarily_unavailable', retryAfterSeconds: 1 } })
    const asked = idp.backend.requests.length
    for (let i = 0; i < 20; i++) expect(await auth.outcome(await fresh())).toBe('unavailable')
    expect(idp.backend.requests.length).toBe(asked)
    expect(auth.problems).toHaveLength(1)
    idp.routes.clear()
    await idp.clock.advance(1_000)
    expect(await auth.outcome(await fresh())).toBe('accepted')
  })

  it('does not stop the start, and one that was down then is used once it is up', async () => {
    idp.routes.set(KEYS, (_request, response) => void response.destroy())
    const auth = idp.authenticator()
    await auth.warm()
    expect(auth.problems).toHaveLength(1)
    idp.routes.clear()
    await idp.clock.advance(1_000)
    await auth.warm()
    expect(await auth.outcome(await fresh())).toBe('accepted')
    expect(auth.stats.keyFetches).toBe(2)
  })

  it('is discovered again when its keys have moved', async () => {
    const auth = idp.authenticator()
    await auth.outcome(await fresh())
    idp.jwks = { keys: [young.jwk] }
    idp.routes.set(KEYS, (_request, response) => void response.writeHead(404).end())
    idp.routes.set(DISCOVERY, (_request, response) => answerJson(response, { issuer: idp.issuer, jwks_uri: `${idp.issuer}/moved` }))
    idp.routes.set('/moved', (_request, response) => answerJson(response, idp.jwks))
    expect(await auth.outcome(await fresh(young))).toBe('unavailable')
    await idp.clock.advance(1_000)
    expect(await auth.outcome(await fresh(young))).toBe('accepted')
  })

  it('does not lock out who holds a token of a known key, for a day', async () => {
    const auth = idp.authenticator()
    await auth.outcome(await fresh())
    idp.routes.set(DISCOVERY, (_request, response) => void response.writeHead(503).end())
    idp.routes.set(KEYS, (_request, response) => void response.writeHead(503).end())
    for (let hour = 1; hour <= 23; hour++) {
      await idp.clock.advance(3_600_000)
      expect(await auth.outcome(await fresh()), `after ${hour} h`).toBe('accepted')
    }
    expect(await auth.outcome(await fresh(young))).toBe('unavailable') // only the provider could tell
    await idp.clock.advance(2 * 3_600_000)
    expect(await auth.outcome(await fresh())).toBe('unavailable')
  })

  it('does not hold up who holds a token of a known key when it hangs', async () => {
    const auth = idp.authenticator()
    await auth.outcome(await fresh())
    await idp.clock.advance(3_600_000)
    idp.routes.set(KEYS, () => {}) // never answers
    const outcome = auth.outcome(await fresh())
    await eventually(() => idp.hits(KEYS) === 2)
    await idp.clock.advance(2_000)
    expect(await outcome).toBe('accepted')
    await idp.clock.advance(5_000)
    expect(await auth.outcome(await fresh())).toBe('accepted')
  })

  it('has a time limit', async () => {
    idp.routes.set(DISCOVERY, () => {}) // never answers
    const auth = idp.authenticator()
    const outcome = auth.outcome(await fresh())
    await eventually(() => idp.hits(DISCOVERY) === 1)
    await idp.clock.advance(8_000)
    expect(await outcome).toBe('unavailable')
  })

  it.each<[string, string, (response: import('node:http').ServerResponse) => void]>([
    ['a huge key document', KEYS, (response) => void response.writeHead(200).end(`{"keys":[],"pad":"${'x'.repeat(1 << 20)}"}`)],
    ['a key document that claims to be huge', KEYS, (response) => void response.writeHead(200, { 'content-length': 1e12 }).flushHeaders()],
    ['a key document that is no JSON', KEYS, (response) => void response.writeHead(200).end('<html>')],
    ['a key document that is a list', KEYS, (response) => answerJson(response, [])],
    ['keys that are no list', KEYS, (response) => answerJson(response, { keys: { a: 1 } })],
    ['no keys', KEYS, (response) => answerJson(response, { keys: [] })],
    ['only useless keys', KEYS, (response) => answerJson(response, { keys: [null, 5, {}, { kty: 'EC' }, { ...old.jwk, use: 'enc' }] })],
    ['deeply nested keys', KEYS, (response) => void response.writeHead(200).end(`{"keys":${'['.repeat(2e5)}`)],
    [
      'a discovery document of another issuer',
      DISCOVERY,
      (response) => answerJson(response, { issuer: 'https://x.example', jwks_uri: `${idp.issuer}${KEYS}` }),
    ],
    ['a discovery document without keys', DISCOVERY, (response) => answerJson(response, { issuer: idp.issuer })],
    [
      'a redirect to a metadata service',
      DISCOVERY,
      (response) => void response.writeHead(302, { location: 'http://169.254.169.254/' }).end(),
    ],
    ['a redirect of the keys', KEYS, (response) => void response.writeHead(307, { location: '/other-keys' }).end()],
    [
      'keys at a metadata service',
      DISCOVERY,
      (response) => answerJson(response, { issuer: idp.issuer, jwks_uri: 'https://169.254.169.254/keys' }),
    ],
    ['keys over plain http', DISCOVERY, (response) => answerJson(response, { issuer: idp.issuer, jwks_uri: 'http://keys.example/' })],
    ['keys in a file', DISCOVERY, (response) => answerJson(response, { issuer: idp.issuer, jwks_uri: 'file:///etc/passwd' })],
  ])('with %s is unavailable', async (_name, path, answer) => {
    idp.routes.set('/other-keys', (_request, response) => answerJson(response, idp.jwks))
    idp.routes.set(path, (_request, response) => answer(response))
    const auth = idp.authenticator()
    expect(await auth.outcome(await fresh())).toBe('unavailable')
    expect(auth.problems).toHaveLength(1)
    expect(idp.hits('/other-keys')).toBe(0)
  })

  it('keeps its good keys when one of them is broken', async () => {
    idp.jwks = { keys: [{ kty: 'EC', crv: 'P-256', x: 'AA', y: 'AA', kid: 'bad' }, { kty: 'EC', crv: 'secp999' }, null, old.jwk] }
    expect(await idp.authenticator().outcome(await fresh())).toBe('accepted')
  })
})

describe('addresses', () => {
  it('of this machine and of private networks are called only if that is allowed', async () => {
    const auth = idp.authenticator({ provider: { allowPrivateIP: false } })
    expect(await auth.outcome(await fresh())).toBe('unavailable')
    expect(idp.backend.requests).toEqual([])
    expect(auth.problems.join()).toMatch(/loopback address \(allowPrivateIP is off\)$/)
  })

  it('over plain http are called only on this machine, unless allowed', async () => {
    const auth = idp.authenticator({ provider: { issuer: 'http://idp.example', jwksUrl: 'http://idp.example/keys' } })
    expect(await auth.outcome(await idp.token({ claims: { iss: 'http://idp.example' } }))).toBe('unavailable')
    expect(auth.problems.join()).toContain('is not https')
  })

  it('of configured keys spare discovery, and whatever the issuer is', async () => {
    const auth = idp.authenticator({ provider: { issuer: 'https://issuer.example', jwksUrl: `${idp.issuer}${KEYS}` } })
    expect(await auth.outcome(await idp.token({ claims: { iss: 'https://issuer.example' } }))).toBe('accepted')
    expect(idp.hits(DISCOVERY) + idp.hits(OAUTH_METADATA)).toBe(0)
  })
})

describe('the bearer for discovery and keys', () => {
  let folder: string
  beforeAll(async () => {
    folder = await mkdtemp(join(tmpdir(), 'thv-auth-'))
  })
  afterAll(() => rm(folder, { recursive: true }))

  it('is read from its file each time', async () => {
    const file = join(folder, 'token')
    await writeFile(file, 'first\n')
    const auth = idp.authenticator({ provider: { authTokenFile: file } })
    expect(await auth.outcome(await fresh())).toBe('accepted')
    await writeFile(file, 'second\n')
    idp.jwks = { keys: [young.jwk] }
    expect(await auth.outcome(await fresh(young))).toBe('accepted')
    expect(idp.backend.requests.map(({ url, headers }) => [url, headers.authorization])).toEqual([
      [DISCOVERY, 'Bearer first'],
      [KEYS, 'Bearer first'],
      [KEYS, 'Bearer second'],
    ])
  })

  it('that is missing makes the provider unavailable, and is named', async () => {
    const auth = idp.authenticator({ provider: { authTokenFile: join(folder, 'none') } })
    expect(await auth.outcome(await fresh())).toBe('unavailable')
    expect(auth.problems.join()).toContain(join(folder, 'none'))
  })
})

it.each([
  ['', 600_000],
  ['max-age=120', 120_000],
  ['public, MAX-AGE="300"', 300_000],
  ['max-age=1', 60_000],
  ['max-age=99999999999', 3_600_000],
  ['no-store', 60_000],
  ['private, no-cache, max-age=900', 60_000],
  ['nonsense', 600_000],
])('keys with Cache-Control %j are fresh for %i ms', (header, ms) => {
  expect(freshFor(header)).toBe(ms)
})
