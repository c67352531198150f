import { createHook } from 'node:async_hooks'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { CLIENT, sendJson, startTokenServer, type TokenServer } from '@thv/auth/outgoing/testing/token-server'
import type { UpstreamKey, UpstreamTokenResult, UpstreamTokens } from '@thv/authserver/upstream-tokens'
import { createOutbound } from '@thv/http/outbound/outbound'
import type { Exchange } from '@thv/http/server/exchange'
import { type Clock, systemClock, TestClock } from '@thv/kernel/clock'
import { readRunConfig } from '@thv/runconfig/read-run-config'
import { createMetrics } from '@thv/telemetry/metrics'
import { CollectingLog } from '@thv/telemetry/testing/collecting-log'
import { afterEach, describe, expect, it } from 'vitest'
import { pipelineFromRunConfig } from '../from-run-config.ts'
import type { Pipeline } from '../pipeline/pipeline.ts'
import type { Caller, Hop } from '../pipeline/request-context.ts'
import { testHop } from '../testing/test-context.ts'

const open: AsyncDisposable[] = []
afterEach(async () => {
  for (const one of open.splice(0).toReversed()) await one[Symbol.asyncDispose]()
})

interface Made {
  readonly pipeline: Pipeline
  readonly log: CollectingLog
}

interface MakeOptions {
  readonly env?: Record<string, string>
  readonly clock?: Clock
  readonly upstreamTokens?: UpstreamTokens
}

function make(document: object, options: MakeOptions = {}): Made {
  const read = readRunConfig({ name: 'x', transport: 'streamable-http', remote_url: 'https://example.com/mcp', ...document })
  if (!read.ok) throw new TypeError(JSON.stringify(read.problems))
  const outbound = createOutbound()
  open.push(outbound)
  const log = new CollectingLog()
  const { env = {}, clock = systemClock, upstreamTokens } = options
  return { pipeline: pipelineFromRunConfig(read.config, { env, log, clock, outbound, metrics: createMetrics(), upstreamTokens }), log }
}

async function tokenServer(): Promise<TokenServer> {
  const server = await startTokenServer()
  open.push(server)
  return server
}

const withHeaders = (headers: Record<string, string | string[]>) => ({ headers }) as unknown as Exchange
const callerHop = (caller: Partial<Caller> = {}, headers = {}): Hop =>
  testHop({ caller: { principal: 'p', ...caller }, exchange: withHeaders(headers) })

/** The headers that the backend gets over those of the client; undefined: withheld. */
async function sent(pipeline: Pipeline, hop: Hop): Promise<Record<string, unknown>> {
  const rejection = await pipeline.prepare(hop)
  if (rejection !== undefined) throw new Error(`rejected: ${rejection.error}`)
  const set = {}
  pipeline.headers(hop, set)
  return set
}

const SECRET = { TOOLHIVE_TOKEN_EXCHANGE_CLIENT_SECRET: CLIENT.secret }

describe('header injection', () => {
  const config = { header_injection_config: { header_name: 'X-Api-Key', header_value_env: 'KEY' } }

  it('sets the header for clients and for requests of our own, over forwarded headers', async () => {
    const forward = { header_forward: { add_plaintext_headers: { 'x-api-key': 'weak', 'x-b': '1' } } }
    const { pipeline } = make({ ...config, ...forward }, { env: { KEY: 's3cret\n' } })
    expect(await sent(pipeline, callerHop())).toEqual({ 'x-api-key': 's3cret', 'x-b': '1' })
    expect(await sent(pipeline, testHop())).toEqual({ 'x-api-key': 's3cret', 'x-b': '1' })
    expect(pipeline.credentialsRejected(callerHop())).toBe(false)
  })

  it.each([
    ['a value that is missing', {}, 'KEY', /header_value_env: the variable KEY is not set/],
    ['a value with a line break', { KEY: 'a\nb' }, 'X-Api-Key', /not valid in a header/],
    ['a header of the proxy itself', { KEY: 'a' }, 'Host', /set by the proxy itself/],
  ])('does not start with %s, and quotes none', (_, env, header_name, message) => {
    const document = { header_injection_config: { header_name, header_value_env: 'KEY' } }
    expect(() => make(document, { env })).toThrow(expect.objectContaining({ message: expect.stringMatching(message) }))
  })
})

describe('remote_auth_config', () => {
  it('sends a bearer token by value, by the name of a secret, and by the variable of ToolHive', async () => {
    const given = make({ remote_auth_config: { bearer_token: 'abc' } })
    const named = make(
      { remote_auth_config: { bearer_token: 'my-secret,target=bearer_token' } },
      { env: { 'TOOLHIVE_SECRET_my-secret': 'def' } },
    )
    expect(await sent(given.pipeline, callerHop({}, { authorization: 'Bearer client' }))).toEqual({ authorization: 'Bearer abc' })
    expect(await sent(named.pipeline, testHop())).toEqual({ authorization: 'Bearer def' })
    expect(() => make({ remote_auth_config: { bearer_token: 'gone,target=bearer_token' } })).toThrow(/TOOLHIVE_SECRET_gone is not set/)
  })

  it('reads a token file again when it changes or its token is rejected, and keeps the last one', async () => {
    const folder = await mkdtemp(join(tmpdir(), 'thv-token-'))
    const file = join(folder, 'token')
    const clock = new TestClock()
    const { pipeline, log } = make({ remote_auth_config: { bearer_token_file: file } }, { clock })
    expect(await pipeline.prepare(callerHop())).toMatchObject({ error: 'credentials_refused' })
    await writeFile(file, 'first\n')
    await clock.advance(1_000)
    expect(await sent(pipeline, callerHop())).toEqual({ authorization: 'Bearer first' })

    await writeFile(file, 'second')
    expect(await sent(pipeline, callerHop())).toEqual({ authorization: 'Bearer first' })
    await clock.advance(10_000)
    await expect.poll(() => sent(pipeline, callerHop()), { timeout: 10_000 }).toEqual({ authorization: 'Bearer second' })

    await clock.advance(2_000)
    await writeFile(file, 'third')
    const hop = callerHop()
    await pipeline.prepare(hop)
    expect(pipeline.credentialsRejected(hop)).toBe(true)
    const again = callerHop()
    expect(await sent(pipeline, again)).toEqual({ authorization: 'Bearer third' })
    expect(pipeline.credentialsRejected(again)).toBe(false) // it was read a moment ago

    await rm(folder, { recursive: true })
    await clock.advance(10_000)
    expect(await sent(pipeline, callerHop())).toEqual({ authorization: 'Bearer third' })
    await expect.poll(() => log.lines.length, { timeout: 10_000 }).toBe(2)
    expect(log.lines.join()).not.toMatch(/first|second|third/)
  })

  it('gets tokens with credentials of its own, one for all callers', async () => {
    const server = await tokenServer()
    const remote_auth_config = {
      client_id: CLIENT.id,
      client_secret: 'oauth,target=client_secret',
      token_url: server.url,
      scopes: ['a', 'b'],
      resource: 'urn:x',
    }
    const { pipeline } = make({ remote_auth_config }, { env: { TOOLHIVE_SECRET_oauth: CLIENT.secret } })
    const hops = await Promise.all(
      Array.from({ length: 100 }, (_, i) => sent(pipeline, i % 2 ? callerHop({ principal: `p${i}` }) : testHop())),
    )
    expect(new Set(hops.map((headers) => headers['authorization']))).toEqual(new Set(['Bearer issued-1']))
    expect(server.forms.map(String)).toEqual(['grant_type=client_credentials&scope=a+b&resource=urn%3Ax'])
  })

  it.each([
    ['authorize_url', { authorize_url: 'https://i.example.com/a' }],
    ['use_pkce', { use_pkce: true }],
    ['oauth_params', { oauth_params: { prompt: 'x' } }],
    ['scope_param_name', { scope_param_name: 'scopes' }],
    ['client_id', { bearer_token: 'x', client_id: 'c', client_secret: 's', token_url: 'https://i.example.com' }],
    ['client_secret', { client_id: 'c', token_url: 'https://i.example.com' }],
    ['token_url', { client_id: 'c', client_secret: 's' }],
    ['issuer', { client_id: 'c', client_secret: 's', issuer: 'keycloak' }],
    ['resource', { bearer_token: 'x', resource: 'urn:x' }],
    ['bearer_token_file', { bearer_token: 'x', bearer_token_file: '/f' }],
  ])('names %s when it cannot work', (member, remote_auth_config) => {
    expect(() => make({ remote_auth_config })).toThrow(`"remote_auth_config.${member}"`)
  })
})

describe('token exchange', () => {
  const config = (url: string, more: object = {}) => ({
    token_exchange_config: { token_url: url, client_id: CLIENT.id, audience: 'orders', scopes: ['a', 'b'], ...more },
  })

  it("exchanges the caller's token, once for 1,000 requests, and keeps the token itself back", async () => {
    const server = await tokenServer()
    const { pipeline } = make({ ...config(server.url), oidc_config: { issuer: 'https://i.example.com' } }, { env: SECRET })
    const hop = () => callerHop({ token: 'subject-a' }, { authorization: 'Bearer subject-a' })
    const all = await Promise.all(Array.from({ length: 1_000 }, () => sent(pipeline, hop())))
    expect(new Set(all.map(({ authorization }) => authorization))).toEqual(new Set(['Bearer issued-1.for.subject-a']))
    expect(Object.fromEntries(server.forms[0] ?? [])).toEqual({
      grant_type: 'urn:ietf:params:oauth:grant-type:token-exchange',
      subject_token: 'subject-a',
      subject_token_type: 'urn:ietf:params:oauth:token-type:access_token',
      requested_token_type: 'urn:ietf:params:oauth:token-type:access_token',
      audience: 'orders',
      scope: 'a b',
    })
    expect(await sent(pipeline, callerHop({ token: 'subject-b' }))).toMatchObject({ authorization: 'Bearer issued-2.for.subject-b' })
    expect(server.backend.requests).toHaveLength(2)
  })

  it('may use a header of its own; Authorization is withheld then', async () => {
    const server = await tokenServer()
    const own = { header_strategy: 'custom', external_token_header_name: 'X-Token', subject_token_type: 'jwt' }
    const { pipeline } = make(config(server.url, own), { env: SECRET })
    expect(await sent(pipeline, callerHop({}, { authorization: 'Bearer s' }))).toEqual({
      'x-token': 'Bearer issued-1.for.s',
      authorization: undefined,
    })
    expect(server.forms[0]?.get('subject_token_type')).toBe('urn:ietf:params:oauth:token-type:jwt')
  })

  it('makes no promise and no timer once the token is known', async () => {
    const server = await tokenServer()
    const { pipeline } = make(config(server.url), { env: SECRET })
    const hop = callerHop({ token: 's' })
    await pipeline.prepare(hop)
    const made: string[] = []
    const hook = createHook({ init: (_id, type) => void made.push(type) }).enable()
    const answers: unknown[] = []
    for (let i = 0; i < 100; i++) {
      hop.credentials = undefined
      answers.push(pipeline.prepare(hop))
    }
    hook.disable()
    expect(new Set(answers)).toEqual(new Set([undefined]))
    expect(made).toEqual([])
    expect(hop.credentials).toEqual({ authorization: 'Bearer issued-1.for.s' })
  })

  describe('of the token that the caller has at an upstream provider', () => {
    const ISSUER = 'https://mcp.example.com'
    const resource = `${ISSUER}/mcp`
    const provider = (name: string) => ({ name, type: 'oidc', oidc_config: { issuer_url: 'https://idp.example.com', client_id: 'x' } })
    const login = { issuer: ISSUER, allowed_audiences: [resource], upstreams: [provider('corp'), provider('crm')] }
    const document = (url: string) => ({
      ...config(url, { subject_provider_name: 'crm' }),
      oidc_config: { issuer: ISSUER, audience: resource, resource_url: resource },
      embedded_auth_server_config: login,
    })
    const hop = () => {
      const identity = { subject: 'ada', issuer: ISSUER, provider: 'own', claims: { scope: 'mcp' } }
      return callerHop({ token: 'of-the-caller', identity }, { authorization: 'Bearer of-the-caller', host: 'mcp.example.com' })
    }
    const vault = (result: UpstreamTokenResult) => {
      const rejected: string[] = []
      const tokens = { use: () => result, rejected: (key: UpstreamKey, token: string) => rejected.push(`${key.provider} ${token}`) }
      return { rejected, upstreamTokens: { ...tokens, needsLogin: () => {} } as unknown as UpstreamTokens }
    }

    it('sends the backend the new token alone, and keeps it for the next call', async () => {
      const server = await tokenServer()
      const { upstreamTokens } = vault({ kind: 'usable', accessToken: 'of-crm' })
      const { pipeline } = make(document(server.url), { env: SECRET, upstreamTokens })
      for (let call = 0; call < 3; call++) expect(await sent(pipeline, hop())).toEqual({ authorization: 'Bearer issued-1.for.of-crm' })
      expect(server.backend.requests).toHaveLength(1)
      expect(server.forms[0]?.get('subject_token')).toBe('of-crm')
    })

    it('asks for a login to that provider where there is no token', async () => {
      const server = await tokenServer()
      const { pipeline } = make(document(server.url), { env: SECRET, ...vault({ kind: 'missing' }) })
      const rejection = await pipeline.prepare(hop())
      expect(rejection).toMatchObject({ httpStatus: 403 })
      expect(rejection?.headers?.['www-authenticate']).toContain('scope="mcp upstream:crm"')
      expect(server.backend.requests).toHaveLength(0)
    })

    it('drops what the backend rejects', async () => {
      const server = await tokenServer()
      const { pipeline } = make(document(server.url), { env: SECRET, ...vault({ kind: 'usable', accessToken: 'of-crm' }) })
      const first = hop()
      await pipeline.prepare(first)
      expect(pipeline.credentialsRejected(first)).toBe(true)
      expect(await sent(pipeline, hop())).toEqual({ authorization: 'Bearer issued-2.for.of-crm' })
    })

    it.each<[string, object, string]>([
      [
        'of an unknown provider',
        { token_exchange_config: { token_url: 'https://t.example.com', subject_provider_name: 'other' } },
        'no provider other',
      ],
      [
        'without tokens',
        { embedded_auth_server_config: { ...login, disable_upstream_token_injection: true } },
        'disable_upstream_token_injection must be false',
      ],
      ['that another token would overwrite', { upstream_swap_config: {} }, 'sets the header that upstream_swap_config sets'],
    ])('is refused %s', (_, more, problem) => {
      const { upstreamTokens } = vault({ kind: 'missing' })
      expect(() => make({ ...document('https://t.example.com/token'), ...more }, { upstreamTokens })).toThrow(problem)
    })
  })

  it('adds nothing to requests of our own', async () => {
    const server = await tokenServer()
    const { pipeline } = make(config(server.url), { env: SECRET })
    expect(await sent(pipeline, testHop())).toEqual({ authorization: undefined })
  })

  it.each([
    ['no token', {}, {}],
    ['another scheme', {}, { authorization: 'Basic abc' }],
    ['two headers', {}, { authorization: ['Bearer a', 'Bearer b'] }],
    ['a token that was not checked', { oidc_config: { issuer: 'https://i.example.com' } }, { authorization: 'Bearer a' }],
  ])('never goes on with %s', async (_, document, headers) => {
    const server = await tokenServer()
    const { pipeline } = make({ ...config(server.url), ...document }, { env: SECRET })
    expect(await pipeline.prepare(callerHop({}, headers))).toMatchObject({
      httpStatus: 401,
      headers: { 'www-authenticate': 'Bearer realm="toolhive"' },
    })
    expect(server.backend.requests).toEqual([])
  })

  it.each([
    ['its subject', 400, { error: 'invalid_grant' }, 401, 'invalid_grant'],
    ['the client', 401, { error: 'invalid_client' }, 502, 'invalid_client'],
    ['everything for now', 503, {}, 503, '503'],
  ])('answers a refusal of %s, kept for a while, and logs it once', async (_, status, body, expected, reason) => {
    const server = await tokenServer()
    const { pipeline, log } = make(config(server.url), { env: SECRET })
    server.answer = (_request, response) => sendJson(response, status, body)
    for (let i = 0; i < 3; i++) {
      const rejection = await pipeline.prepare(callerHop({ token: 'secret-subject' }))
      expect(rejection?.httpStatus).toBe(expected)
      if (expected === 401) expect(rejection?.headers?.['www-authenticate']).toContain('error="invalid_token"')
      if (expected === 503) expect(Number(rejection?.headers?.['retry-after'])).toBeGreaterThan(0)
    }
    expect(server.backend.requests).toHaveLength(1)
    expect(log.lines).toEqual([expect.stringContaining(reason)])
    expect(log.lines.join()).not.toContain('secret-subject')
  })

  it('of one caller that upsets the endpoint does not close it to the others', async () => {
    const server = await tokenServer()
    const { pipeline } = make(config(server.url), { env: SECRET, clock: new TestClock() })
    const usual = { access_token: 'fine', token_type: 'Bearer', issued_token_type: 'x', expires_in: 600 }
    server.answer = ({ body }, response) => sendJson(response, body.includes('hostile') ? 500 : 200, usual)
    for (let i = 0; i < 5; i++) {
      expect((await pipeline.prepare(callerHop({ token: `hostile${i}` })))?.httpStatus).toBe(503)
      expect(await sent(pipeline, callerHop({ token: `neighbor${i}` }))).toEqual({ authorization: 'Bearer fine' })
    }
    expect((await pipeline.prepare(callerHop({ token: 'hostile0' })))?.httpStatus).toBe(503)
    expect(server.backend.requests).toHaveLength(10) // the last one was not asked about again
  })

  it('drops a token that the backend rejects, and the next one is another', async () => {
    const server = await tokenServer()
    const { pipeline } = make(config(server.url), { env: SECRET })
    const hop = callerHop({ token: 's' })
    await pipeline.prepare(hop)
    expect(pipeline.credentialsRejected(hop)).toBe(true)
    hop.credentials = undefined
    expect(await sent(pipeline, hop)).toEqual({ authorization: 'Bearer issued-2.for.s' })
    expect(pipeline.credentialsRejected(hop)).toBe(false)
    expect(pipeline.credentialsRejected(testHop())).toBe(false)
  })
})

it.each([
  ['token_exchange_config', { token_url: 'https://i.example.com' }],
  ['header_injection_config', { header_name: 'X-A', header_value_env: 'A' }],
  ['remote_auth_config', { bearer_token: 'x' }],
])('%s is refused for a server that speaks stdio, which gets no headers', (field, value) => {
  const read = readRunConfig({ name: 'x', transport: 'stdio', image: 'i:1', [field]: value })
  expect(read).toMatchObject({ ok: false, problems: [{ path: field, message: expect.stringContaining('stdio') }] })
})
