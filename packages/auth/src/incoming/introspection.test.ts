import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { eventually } from '@thv/http/testing/loopback'
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import {
  answerJson,
  type FakeProvider,
  INTROSPECT,
  type SigningKey,
  signingKey,
  startFakeProvider,
  type TestedAuthenticator,
} from './testing/fake-provider.ts'

let key: SigningKey
let idp: FakeProvider
let auth: TestedAuthenticator
let answer: object

beforeAll(async () => {
  key = await signingKey('k')
})
beforeEach(async () => {
  idp = await startFakeProvider(key)
  answer = { active: true, sub: 'ada', aud: 'tests', groups: ['a'] }
  idp.routes.set(INTROSPECT, (_request, response) => answerJson(response, answer))
  auth = idp.authenticator({
    provider: { introspection: { url: `${idp.issuer}${INTROSPECT}`, clientId: 'us', clientSecret: 'p@ss:w/ord ü' } },
  })
})
afterEach(() => idp[Symbol.asyncDispose]())

/** Of one question to the provider. */
const LIMIT_MS = 5_000
const seconds = (more: number) => idp.clock.now() / 1_000 + more

describe('an opaque token', () => {
  it('is asked about as RFC 7662 says, with all claims kept', async () => {
    const result = await auth.authenticate('Bearer opaque+/~_-.=')
    expect(result).toMatchObject({ ok: true, identity: { subject: 'ada', claims: { groups: ['a'] } } })
    const [request] = idp.backend.requests
    expect(request?.method).toBe('POST')
    expect(Object.fromEntries(new URLSearchParams(request?.body))).toEqual({ token: 'opaque+/~_-.=', token_type_hint: 'access_token' })
    const [id = '', secret = ''] = Buffer.from(request?.headers.authorization?.slice(6) ?? '', 'base64')
      .toString()
      .split(':')
    expect([id, new URLSearchParams(`x=${secret}`).get('x')]).toEqual(['us', 'p@ss:w/ord ü'])
  })

  it.each<[string, () => object]>([
    ['is not active', () => ({ active: false, sub: 'ada', aud: 'tests' })],
    ['is active in word only', () => ({ active: 'true', sub: 'ada', aud: 'tests' })],
    ['has ended', () => ({ active: true, sub: 'ada', aud: 'tests', exp: seconds(-60) })],
    ['has not begun', () => ({ active: true, sub: 'ada', aud: 'tests', nbf: seconds(60) })],
    ['is for another audience', () => ({ active: true, sub: 'ada', aud: ['others'] })],
    ['has no audience', () => ({ active: true, sub: 'ada', aud: undefined })],
    ['is of another issuer', () => ({ active: true, sub: 'ada', aud: 'tests', iss: 'https://x.example' })],
    ['has no subject', () => ({ active: true, aud: 'tests' })],
    ['has a name that is no subject', () => ({ active: true, username: 'ada', aud: 'tests' })],
    ['is of an unnamed user of a client', () => ({ active: true, username: 'ada', client_id: 'app', aud: 'tests' })],
    ['has a subject that is null', () => ({ active: true, sub: null, client_id: 'app', username: 'ada', aud: 'tests' })],
    ['has the subject of a client', () => ({ active: true, sub: 'client:robot', aud: 'tests' })],
    ['has a client that is no text', () => ({ active: true, client_id: ['robot'], aud: 'tests' })],
    ['says nothing', () => ({})],
  ])('is rejected when it %s', async (_name, claims) => {
    answer = claims()
    expect(await auth.outcome('opaque')).toBe('rejected')
  })

  it('may leave out issuer and end, and name its client alone', async () => {
    answer = { active: true, client_id: 'robot', aud: 'tests' }
    const result = await auth.authenticate('Bearer opaque')
    expect(result.ok && result.identity.subject).toBe('client:robot')
  })

  it('of a client is not that of the user with the same name', async () => {
    const subjectOf = async (token: string) => {
      const result = await auth.authenticate(`Bearer ${token}`)
      return result.ok ? result.identity.subject : undefined
    }
    answer = { active: true, client_id: 'ada', aud: 'tests' }
    const client = await subjectOf('opaque-1')
    answer = { active: true, sub: 'ada', client_id: 'ada', aud: 'tests' }
    expect([client, await subjectOf('opaque-2')]).toEqual(['client:ada', 'ada'])
    expect(await auth.outcome(await idp.token({ claims: { sub: 'client:ada' } }))).toBe('rejected')
  })

  it('may leave out the audience where none is asked for', async () => {
    answer = { active: true, sub: 'ada' }
    const introspection = { url: `${idp.issuer}${INTROSPECT}` }
    expect(await idp.authenticator({ provider: { introspection, audience: undefined } }).outcome('opaque')).toBe('accepted')
  })

  it('is rejected, unseen by anybody, when no provider can be asked', async () => {
    expect(await idp.authenticator().outcome('opaque')).toBe('rejected')
    expect(idp.backend.requests).toEqual([])
  })

  it('is never asked about when it is a JWT', async () => {
    expect(await auth.outcome(await idp.token({ claims: { aud: 'others' } }))).toBe('rejected')
    expect(idp.hits(INTROSPECT)).toBe(0)
  })
})

describe('cached answers of the provider', () => {
  it('counts for a minute', async () => {
    for (let i = 0; i < 5; i++) expect(await auth.outcome('opaque')).toBe('accepted')
    expect(idp.hits(INTROSPECT)).toBe(1)
    answer = { active: false }
    await idp.clock.advance(59_000)
    expect(await auth.outcome('opaque')).toBe('accepted')
    await idp.clock.advance(1_000)
    expect(await auth.outcome('opaque')).toBe('rejected')
  })

  it('counts for no longer than the token', async () => {
    answer = { ...answer, exp: seconds(10) }
    expect(await auth.outcome('opaque')).toBe('accepted')
    await idp.clock.advance(10_000)
    await auth.outcome('opaque')
    expect(idp.hits(INTROSPECT)).toBe(2)
  })

  it('counts for five seconds when it was no', async () => {
    answer = { active: false }
    for (let i = 0; i < 5; i++) expect(await auth.outcome('opaque')).toBe('rejected')
    expect(idp.hits(INTROSPECT)).toBe(1)
    answer = { active: true, sub: 'ada', aud: 'tests' }
    await idp.clock.advance(5_000)
    expect(await auth.outcome('opaque')).toBe('accepted')
  })

  it('serves all who ask at the same time', async () => {
    const outcomes = await Promise.all(Array.from({ length: 50 }, () => auth.outcome('opaque')))
    expect(outcomes.every((outcome) => outcome === 'accepted')).toBe(true)
    expect(idp.hits(INTROSPECT)).toBe(1)
  })
})

it.each([400, 413, 414, 422])('a token that the provider answers %s to costs the others nothing', async (status) => {
  idp.routes.set(INTROSPECT, (request, response) => {
    if (request.body.includes('bad')) response.writeHead(status).end()
    else answerJson(response, answer)
  })
  expect(await auth.outcome('bad')).toBe('rejected')
  expect(await auth.outcome('good')).toBe('accepted')
  expect(auth.reasons.join()).toContain(String(status))
})

type Misbehave = (response: import('node:http').ServerResponse) => void
const answers =
  (status: number): Misbehave =>
  (response) =>
    void response.writeHead(status).end('{"active":true,"sub":"x"}')

describe.each<[string, Misbehave]>([
  ['429', answers(429)],
  ['500', answers(500)],
  ['503', answers(503)],
  ['nonsense', (response) => void response.writeHead(200).end('active')],
  ['without end', (response) => void response.writeHead(200).end(`{"active":true,"sub":"${'x'.repeat(1 << 17)}"}`)],
  ['by hanging up', (response) => void response.destroy()],
])('a token that the provider answers %s', (_name, behave) => {
  beforeEach(() => {
    idp.routes.set(INTROSPECT, (request, response) => {
      if (request.body.includes('hostile')) behave(response)
      else answerJson(response, answer)
    })
  })

  it('is not judged, and closes the provider to no other token', async () => {
    for (let i = 0; i < 5; i++) {
      expect(await auth.outcome(`hostile${i}`)).toBe('unavailable')
      expect(await auth.outcome(`good${i}`)).toBe('accepted')
    }
    expect(auth.problems).toHaveLength(1)
    expect(auth.problems.join()).not.toContain('hostile')
  })

  it('is asked about once a second', async () => {
    for (let i = 0; i < 5; i++) expect(await auth.outcome('hostile')).toBe('unavailable')
    expect(idp.hits(INTROSPECT)).toBe(1)
    await idp.clock.advance(1_000)
    expect(await auth.outcome('hostile')).toBe('unavailable')
    expect(idp.hits(INTROSPECT)).toBe(2)
  })
})

describe('a token on which the provider hangs', () => {
  beforeEach(() => {
    idp.routes.set(INTROSPECT, (request, response) => {
      if (!request.body.includes('hostile')) answerJson(response, answer)
    })
  })
  const hanging = async (token: string) => {
    const hits = idp.hits(INTROSPECT)
    const outcome = auth.outcome(token)
    await eventually(() => idp.hits(INTROSPECT) > hits)
    await idp.clock.advance(LIMIT_MS)
    return await outcome
  }

  it('is not judged, and closes the provider to no other token', async () => {
    for (let i = 0; i < 5; i++) {
      expect(await hanging(`hostile${i}`)).toBe('unavailable')
      expect(await auth.outcome(`good${i}`)).toBe('accepted')
    }
  })

  it('keeps no other token waiting while it is asked about', async () => {
    const outcome = auth.outcome('hostile')
    await eventually(() => idp.hits(INTROSPECT) === 1)
    expect(await auth.outcome('good')).toBe('accepted')
    await idp.clock.advance(LIMIT_MS)
    expect(await outcome).toBe('unavailable')
  })

  it('is taken for a provider that hangs when no token gets an answer', async () => {
    for (let i = 0; i < 3; i++) expect(await hanging(`hostile${i}`)).toBe('unavailable')
    expect(await auth.outcome('hostile9')).toBe('unavailable')
    expect(idp.hits(INTROSPECT)).toBe(3)
  })
})

it('the size of a cache entry includes the answer of the provider', async () => {
  answer = { ...answer, note: 'x'.repeat(4_000) }
  const introspection = { url: `${idp.issuer}${INTROSPECT}` }
  const one = idp.authenticator({ provider: { introspection }, limits: { maxCachedChars: 10_000 } })
  for (let i = 0; i < 5; i++) expect(await one.outcome(`t${i}`)).toBe('accepted')
  expect(one.stats.cached).toBe(2)
})

describe('a provider that cannot be asked', () => {
  it.each<[string, (response: import('node:http').ServerResponse) => void]>([
    ['refuses our own credentials', (response) => void response.writeHead(401).end()],
    ['sends us elsewhere', (response) => void response.writeHead(307, { location: '/keys' }).end()],
  ])('because it %s makes 503', async (_name, behave) => {
    idp.routes.set(INTROSPECT, (_request, response) => behave(response))
    expect(await auth.outcome('one')).toBe('unavailable')
    expect(await auth.outcome('two')).toBe('unavailable')
    expect(idp.hits(INTROSPECT)).toBe(1) // the second did not have to wait for it
    expect(auth.problems).toHaveLength(1)
    expect(auth.problems.join()).not.toMatch(/p@ss|one/)
  })

  it('is not flooded with invented tokens', async () => {
    idp.routes.set(INTROSPECT, () => {})
    const outcomes = Array.from({ length: 500 }, (_, i) => auth.outcome(`invented${i}`))
    await eventually(() => idp.hits(INTROSPECT) === 64)
    await idp.clock.advance(8_000)
    expect(new Set(await Promise.all(outcomes))).toEqual(new Set(['unavailable']))
    expect(idp.hits(INTROSPECT)).toBe(64)
  })
})

describe('the secret in a file', () => {
  let folder: string
  beforeAll(async () => {
    folder = await mkdtemp(join(tmpdir(), 'thv-auth-'))
  })
  afterAll(() => rm(folder, { recursive: true }))

  it('is read again for each request', async () => {
    const file = join(folder, 'secret')
    const introspection = { url: `${idp.issuer}${INTROSPECT}`, clientId: 'us', clientSecretFile: file }
    const one = idp.authenticator({ provider: { introspection } })
    await writeFile(file, 'first\n')
    await one.outcome('a')
    await writeFile(file, 'second\n')
    await one.outcome('b')
    const sent = idp.backend.requests.map(({ headers }) => Buffer.from(headers.authorization?.slice(6) ?? '', 'base64').toString())
    expect(sent).toEqual(['us:first', 'us:second'])
  })
})
