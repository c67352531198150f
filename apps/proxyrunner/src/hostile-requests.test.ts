import { createHmac, createPublicKey } from 'node:crypto'
import { connect } from 'node:net'
import {
  type FakeProvider,
  rawToken,
  type SigningKey,
  signingKey,
  startFakeProvider,
  type TestedAuthenticator,
} from '@thv/auth/incoming/testing/fake-provider'
import { createOutbound, type Outbound } from '@thv/http/outbound/outbound'
import { systemClock } from '@thv/kernel/clock'
import { createAuthenticate } from '@thv/middleware/authenticate/authenticate'
import { createChallenges } from '@thv/middleware/authenticate/challenges'
import { readRunConfig } from '@thv/runconfig/read-run-config'
import { createMetrics } from '@thv/telemetry/metrics'
import type { OtlpExporter } from '@thv/telemetry/otlp/otlp-exporter'
import { CollectingLog } from '@thv/telemetry/testing/collecting-log'
import { type Fixture, startFixture } from '@thv/testkit/mcp/fixture'
import { type OtlpReceiver, startOtlpReceiver } from '@thv/testkit/otlp/otlp-receiver'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { createAudit } from '../../../packages/middleware/src/audit/audit.ts'
import type { AuditEvent } from '../../../packages/middleware/src/audit/audit-event.ts'
import { withOtlp } from '../../../packages/middleware/src/audit/audit-otlp.ts'
import { makeExporter, makeTelemetry } from '../../../packages/middleware/src/telemetry/telemetry-from-run-config.ts'
import { startGuardedRunner } from './testing/guarded-runner.ts'
import { SseWireClient } from './testing/sse-wire-client.ts'
import { startTestRunner, type TestRunner } from './testing/test-runner.ts'

let key: SigningKey
let foreignKey: SigningKey
let rsa: SigningKey
let idp: FakeProvider
let auth: TestedAuthenticator
let fixture: Fixture
let runner: TestRunner
let session: string
const ISSUED = 'kept-from-answers'
const events: AuditEvent[] = []
/** Every token that was made, good ones included. */
const tokens: string[] = []
let outbound: Outbound
let collector: OtlpReceiver
let exporter: OtlpExporter
const telemetryLog = new CollectingLog()
const telemetryMetrics = createMetrics()
const AUDIT = {
  ...{ component: 'test', eventTypes: [], excludeEventTypes: [], includeRequestData: true, includeResponseData: true },
  ...{ detectApplicationErrors: true, maxDataBytes: 65_536, maxDelegationDepth: 10, trustProxyHeaders: false, trustedProxies: [] },
}

beforeAll(async () => {
  ;[key, foreignKey, rsa] = await Promise.all([signingKey('k'), signingKey('k'), signingKey('rsa', 'RS256')])
  idp = remembering(await startFakeProvider(key))
  idp.jwks = { keys: [key.jwk, rsa.jwk] }
  auth = idp.authenticator()
  const challenges = createChallenges({ realm: 'test', resource: { authorizationServers: [idp.issuer], scopes: ['mcp'] } })
  fixture = await startFixture()
  const sink = { write: (event: AuditEvent) => void events.push(event), close: async () => {} }
  collector = await startOtlpReceiver()
  outbound = createOutbound()
  const telemetry = openTelemetry()
  exporter = telemetry.exporter
  const audit = createAudit(AUDIT, { clock: systemClock, sink: withOtlp(sink, exporter) })
  const authenticate = createAuthenticate({ forwardToken: false }, { authenticator: auth, challenges, clock: idp.clock })
  const middleware = [audit, authenticate, telemetry.middleware]
  runner = await startTestRunner({ backend: fixture.url, middleware })
  await runner.probed()
  const opened = await post(`Bearer ${await idp.token()}`, INITIALIZE)
  session = opened.headers.get('mcp-session-id') ?? ''
  expect(session).not.toBe('')
})
afterAll(async () => {
  await runner?.[Symbol.asyncDispose]()
  await fixture?.[Symbol.asyncDispose]()
  await idp?.[Symbol.asyncDispose]()
  await outbound?.close()
  await collector?.[Symbol.asyncDispose]()
})

function remembering(provider: FakeProvider): FakeProvider {
  const { token } = provider
  return Object.assign(provider, {
    token: async (...options: Parameters<typeof token>) => {
      const made = await token(...options)
      tokens.push(made)
      return made
    },
  })
}

/** As a runner makes it that sends every trace, all metrics and audit events. */
function openTelemetry() {
  const read = readRunConfig({
    ...{ name: 'test', transport: 'streamable-http', remote_url: 'https://mcp.example.com' },
    telemetry_config: {
      ...{ endpoint: collector.endpoint, insecure: true, tracing_enabled: true, metrics_enabled: true, sampling_rate: '1' },
    },
  })
  if (!read.ok) throw new TypeError(JSON.stringify(read.problems))
  const deps = { env: {}, log: telemetryLog, metrics: telemetryMetrics, clock: systemClock, outbound }
  const made = makeExporter(read.config, deps)
  const middleware = makeTelemetry(read.config, { ...deps, exporter: made })
  if (made === undefined || middleware === undefined) throw new TypeError('the document asks for telemetry')
  return { exporter: made, middleware }
}

/** Words of the hostile tokens. */
const WORDS = [ISSUED, 'passwd', 'UNION', 'evil.example', 'admin']

/** Which of the words, and which parts of the tokens, the text has. */
function leaked(text: string, sent: readonly string[]): string[] {
  const parts = sent.flatMap((token) => token.split('.')).filter((part) => part.length > 20)
  return [...WORDS, ...new Set(parts)].filter((secret) => text.includes(secret))
}

const INITIALIZE = {
  ...{ jsonrpc: '2.0', id: 0, method: 'initialize' },
  params: { protocolVersion: '2025-11-25', capabilities: {}, clientInfo: { name: 'x', version: '1' } },
}
const PING = { jsonrpc: '2.0', id: 1, method: 'ping' }

async function post(authorization: string | undefined, body: object = PING, headers: Record<string, string> = {}, query = '') {
  const all = { 'content-type': 'application/json', accept: 'application/json, text/event-stream', ...headers }
  const response = await fetch(runner.url + query, {
    method: 'POST',
    headers: { ...all, ...(authorization !== undefined && { authorization }) },
    body: JSON.stringify(body),
  })
  return { status: response.status, headers: response.headers, text: await response.text() }
}

const now = () => Math.floor(idp.clock.now() / 1_000)
const claims = (more: object = {}) => ({ iss: idp.issuer, aud: 'tests', sub: ISSUED, iat: now(), exp: now() + 600, ...more })
const signed = (more: Record<string, unknown> = {}, header: Record<string, unknown> = {}) =>
  idp.token({ claims: { sub: ISSUED, ...more }, header })
const part = (value: unknown) => Buffer.from(typeof value === 'string' ? value : JSON.stringify(value)).toString('base64url')
const nested = (depth: number) => `${'['.repeat(depth)}${']'.repeat(depth)}`

/** Signed with a public key as if it were a shared secret. */
function hmacToken(alg: string, secret: string | Buffer): string {
  const text = `${part({ alg, kid: 'rsa' })}.${part(claims())}`
  return `${text}.${createHmac(`sha${alg.slice(2)}`, secret)
    .update(text)
    .digest('base64url')}`
}
const pem = () => createPublicKey({ key: rsa.jwk as never, format: 'jwk' }).export({ type: 'spki', format: 'pem' })

/** Another header or payload over the signature of a good token. */
async function spliced(change: { header?: unknown; payload?: unknown }): Promise<string> {
  const [head = '', body = '', signature = ''] = (await signed()).split('.')
  return [
    change.header === undefined ? head : part(change.header),
    change.payload === undefined ? body : part(change.payload),
    signature,
  ].join('.')
}

type Row = readonly [string, () => string | Promise<string>]

/** Each is rejected as a token: one status, one text, one challenge. */
const TOKENS: readonly Row[] = [
  ['no algorithm', () => rawToken({ alg: 'none' }, claims())],
  ['no algorithm, spelled otherwise', () => rawToken({ alg: 'NoNe' }, claims())],
  ['no algorithm, with a signature', async () => `${part({ alg: 'none' })}.${part(claims())}.${(await signed()).split('.')[2]}`],
  ['an empty algorithm', () => rawToken({ alg: '' }, claims(), 'AAAA')],
  ['HMAC with the public key as PEM', () => hmacToken('HS256', pem())],
  ['HMAC with the public key as JWK', () => hmacToken('HS256', JSON.stringify(rsa.jwk))],
  ['HMAC with the modulus', () => hmacToken('HS512', Buffer.from(String(rsa.jwk.n), 'base64url'))],
  ['HMAC with an empty secret', () => hmacToken('HS256', '')],
  ['an algorithm of encryption', () => rawToken({ alg: 'RSA-OAEP', enc: 'A256GCM' }, claims(), 'AAAA')],
  ['an algorithm that is no text', () => rawToken({ alg: 256 }, claims(), 'AAAA')],
  ['another algorithm of the same key', () => spliced({ header: { alg: 'ES384', kid: 'k' } })],
  ['another type of key', () => spliced({ header: { alg: 'RS256', kid: 'k' } })],
  ['a key of somebody else', () => idp.token({ key: foreignKey, claims: { sub: ISSUED } })],
  ['an unknown kid', () => signed({}, { kid: 'unknown' })],
  ['a kid that is a path', () => signed({}, { kid: '../../../../etc/passwd' })],
  ['a kid that is a device', () => signed({}, { kid: '/dev/null' })],
  ['a kid that is SQL', () => signed({}, { kid: "k' UNION SELECT 'x' --" })],
  ['a kid that is a URL', () => signed({}, { kid: 'https://evil.example/k' })],
  ['a kid with a line break', () => signed({}, { kid: 'k\r\nx-admin: 1' })],
  ['a kid of 10 KB', () => signed({}, { kid: 'k'.repeat(10_000) })],
  ['claims of 10 KB', () => spliced({ payload: claims({ groups: Array.from({ length: 1_000 }, (_, at) => `group${at}`) }) })],
  ['a kid of the prototype', () => signed({}, { kid: '__proto__' })],
  [
    'its own key in the header',
    async () => idp.token({ key: foreignKey, header: { kid: undefined, jwk: foreignKey.jwk }, claims: { sub: ISSUED } }),
  ],
  [
    'the address of its own keys',
    () => idp.token({ key: foreignKey, header: { kid: 'x', jku: 'https://evil.example/keys' }, claims: { sub: ISSUED } }),
  ],
  [
    'the address of a certificate',
    () => idp.token({ key: foreignKey, header: { kid: 'x', x5u: 'https://evil.example/c' }, claims: { sub: ISSUED } }),
  ],
  ['a certificate', () => idp.token({ key: foreignKey, header: { kid: 'x', x5c: ['AAAA'] }, claims: { sub: ISSUED } })],
  ['an unknown critical header', () => spliced({ header: { alg: 'ES256', kid: 'k', crit: ['exp'], exp: 1 } })],
  ['an empty list of critical headers', () => spliced({ header: { alg: 'ES256', kid: 'k', crit: [] } })],
  ['a payload that is not encoded', () => spliced({ header: { alg: 'ES256', kid: 'k', b64: false, crit: ['b64'] } })],
  ['the type of a logout token', () => signed({}, { typ: 'logout+jwt' })],
  ['the type of a proof', () => signed({}, { typ: 'dpop+jwt' })],
  ['a type that is no text', () => signed({}, { typ: 7 })],
  ['an issuer with a slash', () => signed({ iss: `${idp.issuer}/` })],
  ['an issuer in capitals', () => signed({ iss: idp.issuer.toUpperCase() })],
  ['another issuer', () => signed({ iss: 'https://evil.example' })],
  ['a list of issuers', () => signed({ iss: [idp.issuer] })],
  ['no issuer', () => signed({ iss: undefined })],
  ['another audience', () => signed({ aud: 'others' })],
  ['the audience as a part of another', () => signed({ aud: 'tests-and-more' })],
  ['the audience with spaces', () => signed({ aud: ' tests ' })],
  ['a list of other audiences', () => signed({ aud: ['others', 'more'] })],
  ['an empty list of audiences', () => signed({ aud: [] })],
  ['an audience that is an object', () => signed({ aud: { tests: true } })],
  ['no audience', () => signed({ aud: undefined })],
  ['no end', () => signed({ exp: undefined })],
  ['an end that is text', () => signed({ exp: String(now() + 600) })],
  ['an end that is a date', () => signed({ exp: '2099-01-01T00:00:00Z' })],
  ['an end that is null', () => signed({ exp: null })],
  ['an end in the past', () => signed({ exp: now() - 60 })],
  ['an end before all time', () => signed({ exp: -1 })],
  ['a beginning ahead', () => signed({ nbf: now() + 120 })],
  ['a beginning that is text', () => signed({ nbf: 'now' })],
  ['an issue ahead', () => signed({ iat: now() + 120 })],
  ['no subject', () => signed({ sub: undefined })],
  ['an empty subject', () => signed({ sub: '' })],
  ['a subject that is a number', () => signed({ sub: 7 })],
  ['a subject that is a list', () => signed({ sub: ['ada'] })],
  ['a subject with a line break', () => signed({ sub: 'ada\nadmin' })],
  ['a subject with a zero', () => signed({ sub: 'ada\u0000' })],
  ['a subject of 2 KB', () => signed({ sub: 'a'.repeat(2_000) })],
  ['another payload under a good signature', () => spliced({ payload: claims({ sub: 'admin' }) })],
  ['a payload that is no JSON', () => spliced({ payload: '{"iss":' })],
  ['a payload that is a list', () => spliced({ payload: [claims()] })],
  ['a member twice in the payload', () => spliced({ payload: `{"sub":"x","sub":"ada","iss":"${idp.issuer}"}` })],
  ['a member twice in the header', () => spliced({ header: '{"alg":"none","alg":"ES256","kid":"k"}' })],
  ['a deep payload', () => spliced({ payload: `{"iss":"${idp.issuer}","x":${nested(5_000)}}` })],
  ['a deep header', () => spliced({ header: `{"alg":"ES256","kid":"k","x":${nested(5_000)}}` })],
  ['a prototype in the payload', () => spliced({ payload: `{"__proto__":{"sub":"ada"},"iss":"${idp.issuer}"}` })],
  ['no signature', async () => (await signed()).replace(/\.[^.]*$/, '.')],
  ['half a signature', async () => (await signed()).slice(0, -40)],
  ['a signature of zeros', async () => `${(await signed()).replace(/\.[^.]*$/, '')}.${'A'.repeat(86)}`],
  ['two parts', async () => (await signed()).split('.').slice(0, 2).join('.')],
  ['four parts', async () => `${await signed()}.AAAA`],
  ['an encrypted token', () => 'a.b.c.d.e'],
  ['a word', () => 'password'],
  ['a token over the limit', () => 'a'.repeat(17 << 10)],
]

describe('a hostile token', () => {
  it('is rejected with one text and one challenge, whatever is wrong with it', async () => {
    const challenge = `Bearer realm="test", error="invalid_token", error_description="token validation failed", resource_metadata="${runner.base}/.well-known/oauth-protected-resource/mcp", scope="mcp"`
    expect(TOKENS.length).toBeGreaterThanOrEqual(70)
    const before = events.length
    const sent: string[] = []
    for (const [title, make] of TOKENS) {
      const token = await make()
      // Over the server's limit of headers it never gets to the token.
      const answer = await post(`Bearer ${token}`)
      if (token.length > 16 << 10 && answer.status === 431) continue
      sent.push(token)
      expect([title, answer.status, answer.headers.get('www-authenticate'), answer.text]).toEqual([
        ...[title, 401, challenge],
        '{"jsonrpc":"2.0","error":{"code":401,"message":"Authentication required: token validation failed"}}',
      ])
    }
    tokens.push(...sent)
    // One event for each.
    await expect.poll(() => events.length - before).toBe(sent.length)
    const audited = events.slice(before)
    expect(new Set(audited.map(({ outcome, subjects }) => `${outcome} ${subjects.user}`))).toEqual(new Set(['denied anonymous']))
    expect(auth.stats.cached).toBe(1) // of the session alone
    expect(fixture.stats.count('ping')).toBe(0)
  })
})

describe('a request without a usable header', () => {
  it.each<[string, () => Promise<{ status: number; text: string }>]>([
    ['no header', () => post(undefined)],
    ['an empty header', () => post('')],
    ['another scheme', () => post('Basic YWRhOng=')],
    ['a scheme without a token', () => post('Bearer')],
    ['a token in quotes', () => post('Bearer "abc"')],
    ['two tokens', async () => post(`Bearer ${await idp.token()} ${await idp.token()}`)],
    ['two tokens with a comma', async () => post(`Bearer ${await idp.token()}, Bearer ${await idp.token()}`)],
    ['two headers', async () => twoHeaders(await idp.token())],
    ['a token in the query', async () => post(undefined, PING, {}, `?access_token=${await idp.token()}`)],
    ['a token in the body', async () => post(undefined, { ...PING, access_token: await idp.token() })],
    ['a token in a cookie', async () => post(undefined, PING, { cookie: `access_token=${await idp.token()}` })],
    ['a token in another header', async () => post(undefined, PING, { 'x-authorization': `Bearer ${await idp.token()}` })],
    ['a token for a proxy', async () => post(undefined, PING, { 'proxy-authorization': `Bearer ${await idp.token()}` })],
    ['forged X-Forwarded-User', () => post(undefined, PING, { 'x-forwarded-user': 'ada', 'x-forwarded-for': '127.0.0.1' })],
  ])('%s is 401', async (_title, request) => {
    const { status, text } = await request()
    expect([status, text]).toEqual([
      401,
      '{"jsonrpc":"2.0","error":{"code":401,"message":"Authentication required: missing or malformed authorization header"}}',
    ])
  })

  it('has the address of its own metadata, whatever X-Forwarded says', async () => {
    const { headers } = await post(undefined, PING, { 'x-forwarded-host': 'evil.example', 'x-forwarded-proto': 'https' })
    expect(headers.get('www-authenticate')).toContain(`resource_metadata="${runner.base}/`)
  })
})

describe("somebody else's session", () => {
  const foreign = async (method: string, more: Record<string, string> = {}) => {
    const authorization = `Bearer ${await idp.token({ claims: { sub: 'eve' } })}`
    const headers = { authorization, 'mcp-session-id': session, 'content-type': 'application/json', ...more }
    const accept = method === 'GET' ? 'text/event-stream' : 'application/json, text/event-stream'
    const response = await fetch(runner.url, {
      ...{ method, headers: { accept, ...headers } },
      ...(method === 'POST' && { body: JSON.stringify(PING) }),
    })
    await response.body?.cancel()
    return response.status
  }

  it.each([
    ['POST', {}],
    ['GET', {}],
    ['GET', { 'last-event-id': '1' }],
    ['DELETE', {}],
  ])('%s %j is 404', async (method, headers) => {
    expect(await foreign(method, headers as Record<string, string>)).toBe(404)
  })

  it('goes on for its owner, with a new token too', async () => {
    const authorization = `Bearer ${await idp.token({ claims: { jti: 'refreshed' } })}`
    expect((await post(authorization, PING, { 'mcp-session-id': session, 'mcp-protocol-version': '2025-11-25' })).status).toBe(200)
  })
})

it("somebody else's HTTP+SSE endpoint is 404, and goes on for its owner", async () => {
  await using guarded = await startGuardedRunner({ transport: 'sse' })
  expect((await fetch(guarded.runner.url, { headers: { accept: 'text/event-stream' } })).status).toBe(401)
  const bearer = async (sub: string) => `Bearer ${await guarded.idp.token({ claims: { sub } })}`
  await using stream = await SseWireClient.open(guarded.runner.url, { authorization: await bearer('ada') })
  const url = new URL(stream.endpoint, guarded.runner.url)
  const status = async (authorization: string | undefined) => {
    const headers = { 'content-type': 'application/json', ...(authorization !== undefined && { authorization }) }
    const answer = await fetch(url, { method: 'POST', headers, body: JSON.stringify(PING) })
    await answer.body?.cancel()
    return answer.status
  }
  expect([await status(undefined), await status(await bearer('eve')), await status(await bearer('ada'))]).toEqual([401, 404, 202])
})

it('thousands of bad tokens leave memory and the provider alone', async () => {
  const before = idp.backend.requests.length
  const refused = await Promise.all(
    Array.from({ length: 3_000 }, (_, i) =>
      auth.authenticate(`Bearer ${rawToken({ alg: 'ES256', kid: `k${i}` }, claims({ jti: i }), 'AAAA')}`),
    ),
  )
  expect(refused.filter(({ ok }) => ok)).toEqual([])
  expect(idp.backend.requests.length - before).toBeLessThan(10)
  expect(auth.stats.cached).toBeLessThan(20)
})

it('a kid of a megabyte does not get past the limit of headers, and the next request is served', async () => {
  const token = await signed({}, { kid: 'k'.repeat(1 << 20) })
  // The server may close the connection before the client has sent all of it.
  const status = await twoHeaders(token).then(
    (answer) => answer.status,
    () => 431,
  )
  expect([431, 0]).toContain(status)
  expect((await post(undefined)).status).toBe(401)
})

it('no token, good or bad, and none of its claims is in a log, an audit event, a metric or a trace', async () => {
  const sessions = { 'mcp-session-id': session, 'mcp-protocol-version': '2025-11-25' }
  expect((await post(`Bearer ${await idp.token()}`, PING, sessions)).status).toBe(200)
  await exporter.close(AbortSignal.timeout(30_000))
  const { spans, metrics, logs, problems } = collector
  expect(problems).toEqual([])
  expect(spans.map(({ name }) => name)).toContain('ping')
  expect(metrics.length).toBeGreaterThan(0)
  expect(logs).toHaveLength(events.length)
  expect(tokens.length).toBeGreaterThan(TOKENS.length)
  const seen = {
    log: [...runner.logged, ...telemetryLog.lines].join('\n'),
    audit: JSON.stringify(events),
    metrics: `${runner.metrics.render()}${telemetryMetrics.render()}`,
    traces: JSON.stringify(spans),
    exportedMetrics: JSON.stringify(metrics),
    exportedEvents: JSON.stringify(logs),
  }
  for (const [where, text] of Object.entries(seen)) expect([where, leaked(text, tokens)]).toEqual([where, []])
})

/** `fetch` would join them. */
function twoHeaders(token: string): Promise<{ status: number; text: string }> {
  const { hostname, port, host } = new URL(runner.base)
  const body = JSON.stringify(PING)
  const head = [
    'POST /mcp HTTP/1.1',
    `Host: ${host}`,
    'Connection: close',
    'Content-Type: application/json',
    `Content-Length: ${body.length}`,
  ]
  const socket = connect(Number(port), hostname)
  socket.end([...head, `Authorization: Bearer ${token}`, `Authorization: Bearer ${token}`, '', body].join('\r\n'))
  return new Promise((resolve, reject) => {
    let answer = ''
    socket.setEncoding('utf8').on('error', reject)
    socket.on('data', (chunk: string) => {
      answer += chunk
    })
    socket.on('end', () => resolve({ status: Number(answer.slice(9, 12)), text: answer.split('\r\n\r\n')[1] ?? '' }))
  })
}
