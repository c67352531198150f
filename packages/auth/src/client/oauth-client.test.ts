import { createServer, type IncomingMessage } from 'node:http'
import type { AddressInfo } from 'node:net'
import { text } from 'node:stream/consumers'
import { createOutbound } from '@thv/http/outbound/outbound'
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import { createAuthorizationRequest, readAuthorizationResponse } from './authorization-request.ts'
import { readBearerChallenge } from './bearer-challenge.ts'
import { createMemoryCredentials, type StoredLogin, withLogin, withoutLogin } from './credential-store.ts'
import { openLoopbackReceiver } from './loopback-receiver.ts'
import { fixedClientId, isDocumentUrl, registerClient } from './oauth-client-id.ts'
import { createOAuthHttp, isLoopback, vettedUrl } from './oauth-http.ts'
import { refreshLogin } from './refresh-login.ts'
import { discoverResource, isResourceOf } from './resource-metadata.ts'
import { ServerLogin } from './server-login.ts'
import { defaultServerMetadata, discoverServer, type ServerMetadata, serverMetadataUrls } from './server-metadata.ts'
import { requestTokens } from './token-request.ts'

/* Lying and broken servers. Honest ones are met by `thv login` and by the official conformance suite. */

interface Answer {
  readonly status?: number
  readonly body: unknown
}

const outbound = createOutbound()
const http = createOAuthHttp({ outbound, allowLoopback: true, timeoutMs: 60_000 })
let answers: Map<string, (request: IncomingMessage, body: string) => Answer>
let origin: string
const server = createServer(async (request, response) => {
  const found = answers.get(request.url ?? '')?.(request, await text(request))
  if (found === undefined) return void response.writeHead(404).end()
  response.writeHead(found.status ?? 200, { 'content-type': 'application/json' })
  response.end(typeof found.body === 'string' ? found.body : JSON.stringify(found.body))
})
beforeAll(async () => {
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  origin = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
})
beforeEach(() => {
  answers = new Map()
})
afterAll(async () => {
  server.closeAllConnections()
  server.close()
  await outbound.close()
})

const metadata = (more: Partial<ServerMetadata> = {}): ServerMetadata => ({
  ...defaultServerMetadata(origin ?? 'http://127.0.0.1'),
  ...more,
})

describe('a challenge (RFC 6750 §3)', () => {
  it.each([
    ['Bearer', {}],
    ['bearer realm="a", scope="x  y", error=invalid_token', { scopes: ['x', 'y'], error: 'invalid_token' }],
    ['Basic realm="Bearer scope", Bearer scope="a"', { scopes: ['a'] }],
    ['Bearer scope="a", Basic realm="b", scope="c"', { scopes: ['a'] }],
    ['Bearer resource_metadata="https://a/\\"b\\\\"', { resourceMetadata: 'https://a/"b\\' }],
    ['Bearer scope="a", scope="b"', { scopes: ['a'] }],
    ['Bearer scope=""', {}],
  ])('%s', (header, expected) => {
    const none = { error: undefined, scopes: undefined, resourceMetadata: undefined }
    expect(readBearerChallenge(header)).toEqual({ ...none, ...expected })
  })

  it.each([undefined, '', 'Basic realm="x"', 'DPoP algs="ES256"', `Bearer ${'x'.repeat(9_000)}="y"`])('none in %s', (header) => {
    expect(readBearerChallenge(header)).toBeUndefined()
  })
})

describe('a resource (RFC 9728 §3.3)', () => {
  it.each([
    ['https://a.example/mcp', 'https://a.example/mcp', true],
    ['https://a.example', 'https://a.example/mcp', true],
    ['https://a.example/mcp', 'https://a.example/mcp/', true],
    ['https://a.example/mc', 'https://a.example/mcp', false],
    ['https://a.example/other', 'https://a.example/mcp', false],
    ['https://b.example/mcp', 'https://a.example/mcp', false],
    ['http://a.example/mcp', 'https://a.example/mcp', false],
    ['https://a.example:8443/mcp', 'https://a.example/mcp', false],
    ['https://a.example/mcp#x', 'https://a.example/mcp', false],
    ['https://a.example/mcp?t=1', 'https://a.example/mcp?t=2', false],
    ['nonsense', 'https://a.example/mcp', false],
  ])('%s is the one of %s: %s', (resource, called, expected) => {
    expect(isResourceOf(resource, called)).toBe(expected)
  })

  it('is looked for below the path and at the root; the metadata of another one is rejected', async () => {
    const at = { server: `${origin}/mcp` }
    expect(await discoverResource(http, at)).toBeUndefined()
    answers.set('/.well-known/oauth-protected-resource', () => ({ body: { resource: origin, authorization_servers: ['https://as'] } }))
    expect(await discoverResource(http, at)).toMatchObject({ resource: origin, authorizationServers: ['https://as'] })
    answers.set('/.well-known/oauth-protected-resource/mcp', () => ({ body: { resource: 'https://evil.example/mcp' } }))
    await expect(discoverResource(http, at)).rejects.toThrow('is about another resource')
  })

  it('that its challenge names must be there', async () => {
    answers.set('/.well-known/oauth-protected-resource', () => ({ body: { resource: origin } }))
    await expect(discoverResource(http, { server: `${origin}/mcp`, metadataUrl: `${origin}/gone` })).rejects.toThrow('HTTP 404')
  })
})

describe('addresses', () => {
  it.each(['http://as.example/token', 'ftp://as.example', 'https://user:pw@as.example', 'javascript:alert(1)', 'nonsense'])(
    '%s is not called',
    (address) => expect(() => vettedUrl(address, true)).toThrow(/not https|user name|not a URL/),
  )

  it.each([
    ['http://127.88.0.4:1/mcp', true],
    ['http://localhost/mcp', true],
    ['http://[::1]:5/mcp', true],
    ['http://127.evil.example/mcp', false],
    ['http://10.0.0.1/mcp', false],
  ])('%s is this machine: %s', (address, expected) => expect(isLoopback(new URL(address))).toBe(expected))

  it('on this machine are called only for a server of this machine', async () => {
    const remote = createOAuthHttp({ outbound, allowLoopback: false })
    await expect(remote.send({ url: `${origin}/x` })).rejects.toThrow('is not https')
    await expect(remote.send({ url: 'https://127.0.0.1:1/x' })).rejects.toThrow('loopback')
    await expect(remote.send({ url: 'https://169.254.169.254/latest' })).rejects.toThrow('never a remote server')
  })

  it('that redirect are not followed', async () => {
    answers.set('/r', () => ({ status: 302, body: {} }))
    expect(await http.send({ url: `${origin}/r` })).toMatchObject({ status: 302 })
  })
})

describe('metadata of an authorization server (RFC 8414)', () => {
  const document = (more: object = {}) => ({
    issuer: origin,
    authorization_endpoint: `${origin}/authorize`,
    token_endpoint: `${origin}/token`,
    code_challenge_methods_supported: ['S256'],
    ...more,
  })

  it('has three places for an issuer with a path, in this order', () => {
    expect(serverMetadataUrls('https://as.example/t1/')).toEqual([
      'https://as.example/.well-known/oauth-authorization-server/t1',
      'https://as.example/.well-known/openid-configuration/t1',
      'https://as.example/t1/.well-known/openid-configuration',
    ])
    expect(serverMetadataUrls('https://as.example')).toHaveLength(2)
  })

  it.each([
    ['another issuer', { issuer: 'https://evil.example' }, 'another issuer'],
    ['a slash more', { issuer: 'SLASH' }, 'another issuer'],
    ['PKCE plain only', { code_challenge_methods_supported: ['plain'] }, 'PKCE'],
    ['no word about PKCE', { code_challenge_methods_supported: undefined }, 'PKCE'],
    ['no token endpoint', { token_endpoint: 7 }, 'token_endpoint'],
  ])('with %s is rejected', async (_title, more, message) => {
    const body = document(more)
    if (body.issuer === 'SLASH') body.issuer = `${origin}/`
    answers.set('/.well-known/oauth-authorization-server', () => ({ body }))
    await expect(discoverServer(http, origin)).rejects.toThrow(message)
  })

  it('that is missing, no JSON, or not available', async () => {
    await expect(discoverServer(http, origin)).rejects.toThrow('has no metadata')
    answers.set('/.well-known/oauth-authorization-server', () => ({ body: '<html>' }))
    await expect(discoverServer(http, origin)).rejects.toThrow('has no metadata')
    answers.set('/.well-known/oauth-authorization-server', () => ({ status: 503, body: {} }))
    await expect(discoverServer(http, origin)).rejects.toThrow('HTTP 503')
  })
})

describe('the response of the authorization endpoint', () => {
  const as = metadata({ issuer: 'https://as.example', sendsIssuer: true })
  const request = createAuthorizationRequest(as, {
    clientId: 'c',
    redirectUri: 'http://127.0.0.1:1/callback',
    scopes: [],
    more: { state: 'mine' },
  })
  const query = (parameters: Record<string, string>) => new URLSearchParams({ state: request.state, ...parameters })

  it('has a state and a verifier that cannot be replaced or guessed', () => {
    const other = createAuthorizationRequest(as, { clientId: 'c', redirectUri: 'x', scopes: [] })
    expect(new URL(request.url).searchParams.getAll('state')).toEqual([request.state])
    expect(new Set([request.state, other.state, request.verifier, other.verifier]).size).toBe(4)
    expect(request.url).not.toContain(request.verifier)
  })

  it('with code, state and issuer is the one', () => {
    expect(readAuthorizationResponse(query({ code: 'x', iss: as.issuer }), request, as)).toBe('x')
    expect(readAuthorizationResponse(query({ code: 'x' }), request, { ...as, sendsIssuer: false })).toBe('x')
  })

  it.each([
    ['another state', { state: 'other', code: 'x', iss: 'https://as.example' }, 'another login'],
    ['no issuer, though the server sends it (RFC 9207 §2.4)', { code: 'x' }, 'does not name its issuer'],
    ['another issuer', { code: 'x', iss: 'https://evil.example' }, 'is not of https://as.example'],
    ['an issuer that differs by a slash', { code: 'x', iss: 'https://as.example/' }, 'is not of'],
    ['an error', { error: 'access_denied', error_description: 'secret', iss: 'https://as.example' }, 'answered access_denied'],
    ['an error of another issuer', { error: 'access_denied', iss: 'https://evil.example' }, 'is not of'],
    ['neither code nor error', { iss: 'https://as.example' }, 'no code'],
  ])('with %s is rejected', (_title, parameters, message) => {
    const read = () => readAuthorizationResponse(query(parameters), request, as)
    expect(read).toThrow(message)
    expect(read).not.toThrow(/secret/)
  })

  it('with a parameter twice is rejected', () => {
    const twice = query({ code: 'x', iss: as.issuer })
    twice.append('code', 'y')
    expect(() => readAuthorizationResponse(twice, request, as)).toThrow('more than once')
  })
})

describe('the loopback receiver', () => {
  it('takes only a visit with the state it waits for', async () => {
    await using receiver = await openLoopbackReceiver()
    const waiting = receiver.response('right', AbortSignal.timeout(60_000))
    expect(receiver.redirectUri).toMatch(/^http:\/\/127\.0\.0\.1:\d+\/callback$/)
    for (const visit of ['?state=wrong&code=x', '?code=x', '/../?state=right', 'x?state=right'])
      expect((await fetch(`${receiver.redirectUri}${visit}`)).status).toBe(404)
    expect((await fetch(`${receiver.redirectUri}?state=right&code=x`, { method: 'POST' })).status).toBe(404)
    const page = await fetch(`${receiver.redirectUri}?state=right&code=x`)
    expect(page.headers.get('content-security-policy')).toContain("default-src 'none'")
    expect(await page.text()).not.toContain('right')
    expect((await waiting).get('code')).toBe('x')
  })

  it('gives up with its signal', async () => {
    await using receiver = await openLoopbackReceiver()
    await expect(receiver.response('x', AbortSignal.abort(new Error('over')))).rejects.toThrow('over')
  })
})

describe('the client', () => {
  it.each([
    ['https://app.example/client.json', true],
    ['https://app.example/', false],
    ['http://app.example/client.json', false],
    ['my-client', false],
  ])('%s is a metadata document: %s', (id, expected) => expect(isDocumentUrl(id)).toBe(expected))

  it('with a document is used only where the server reads such', () => {
    const fixed = { clientId: 'https://app.example/client.json' }
    expect(fixedClientId(metadata(), fixed)).toBeUndefined()
    expect(fixedClientId(metadata({ readsClientDocuments: true }), fixed)).toMatchObject({ source: 'document', authMethod: 'none' })
  })

  it('registers as a native program, and authenticates as the answer says', async () => {
    let asked: unknown
    answers.set('/register', (_request, body) => {
      asked = JSON.parse(body)
      return { status: 201, body: { client_id: 'id', client_secret: 'shh', token_endpoint_auth_method: 'client_secret_post' } }
    })
    const client = await registerClient(http, metadata(), { clientName: 'thv', redirectUri: 'http://127.0.0.1:1/callback' })
    expect(asked).toMatchObject({
      application_type: 'native',
      token_endpoint_auth_method: 'none',
      grant_types: expect.arrayContaining(['refresh_token']),
    })
    expect(client).toMatchObject({ clientId: 'id', authMethod: 'client_secret_post', source: 'registered' })
    let form = ''
    answers.set('/token', (_request, body) => {
      form = body
      return { status: 400, body: { error: 'invalid_grant', error_description: 'shh' } }
    })
    const refused = requestTokens(http, metadata(), { client, form: { grant_type: 'authorization_code', code: 'c' } })
    await expect(refused).rejects.toMatchObject({ oauthError: 'invalid_grant', message: expect.not.stringContaining('shh') })
    expect(form).toContain('client_secret=shh')
  })

  it('says so where nothing can be registered', async () => {
    const registration = { clientName: 'thv', redirectUri: 'http://127.0.0.1:1/callback' }
    await expect(registerClient(http, metadata({ registrationEndpoint: undefined }), registration)).rejects.toThrow(
      'does not register clients',
    )
    answers.set('/register', () => ({ status: 403, body: { error: 'access_denied\nX' } }))
    await expect(registerClient(http, metadata(), registration)).rejects.toThrow('(HTTP 403)')
  })

  it.each([
    [{ access_token: 'a b', token_type: 'Bearer' }, 'no usable access_token'],
    [{ access_token: 'a', token_type: 'DPoP' }, 'not a bearer token'],
    [{ token_type: 'Bearer' }, 'no usable access_token'],
    ['[]', 'no usable access_token'],
  ])('does not take %j for tokens', async (body, message) => {
    answers.set('/token', () => ({ body }))
    const client = { clientId: 'c', authMethod: 'none', source: 'fixed' } as const
    await expect(requestTokens(http, metadata(), { client, form: {} })).rejects.toThrow(message)
  })
})

describe('stored logins', () => {
  const login = (more: Partial<StoredLogin> = {}): StoredLogin => ({
    issuer: origin,
    resource: 'https://a.example/mcp',
    servers: ['https://a.example/mcp'],
    client: { clientId: 'c', authMethod: 'none', source: 'registered' },
    tokenEndpoint: `${origin}/token`,
    accessToken: 'old',
    refreshToken: 'r1',
    scopes: [],
    ...more,
  })
  const signal = AbortSignal.timeout(60_000)

  it('are one per issuer and resource; a server belongs to one of them', () => {
    const one = withLogin({ logins: [], clients: {} }, login())
    const moved = withLogin(one, login({ issuer: 'https://new.example' }))
    expect(moved.logins.map(({ issuer }) => issuer)).toEqual(['https://new.example'])
    expect(withoutLogin(moved, login({ issuer: 'https://new.example' }))).toEqual({ logins: [], clients: { [origin]: login().client } })
  })

  it.each([
    [{ body: { access_token: 'new', token_type: 'bearer', expires_in: 60 } }, { accessToken: 'new', refreshToken: 'r1', renewAt: 31_000 }],
    [{ body: { access_token: 'new', token_type: 'bearer', refresh_token: 'r2' } }, { accessToken: 'new', refreshToken: 'r2' }],
    [{ status: 400, body: { error: 'invalid_grant' } }, undefined],
  ])('renewed with %j', async (answer, expected) => {
    answers.set('/token', () => answer)
    const store = createMemoryCredentials()
    await store.update(async (credentials) => withLogin(credentials, login()), signal)
    const renewed = await refreshLogin(http, store, { login: login(), now: 1_000, signal })
    expect((await store.read()).logins).toEqual(renewed === undefined ? [] : [renewed])
    if (expected === undefined) expect(renewed).toBeUndefined()
    else expect(renewed).toMatchObject(expected)
  })

  it('stay when the server fails or is busy, and are renewed once for all who wait', async () => {
    const store = createMemoryCredentials()
    await store.update(async (credentials) => withLogin(credentials, login()), signal)
    for (const [status, error] of [
      [500, 'server_error'],
      [503, 'temporarily_unavailable'],
      [429, 'temporarily_unavailable'],
    ] as const) {
      answers.set('/token', () => ({ status, body: { error } }))
      await expect(refreshLogin(http, store, { login: login(), now: 0, signal })).rejects.toThrow(`HTTP ${status}`)
      expect((await store.read()).logins).toEqual([login()])
    }
    let count = 0
    answers.set('/token', () => ({ body: { access_token: `new${++count}`, token_type: 'Bearer' } }))
    const all = await Promise.all([1, 2, 3].map(() => refreshLogin(http, store, { login: login(), now: 0, signal })))
    expect(all.map((each) => each?.accessToken)).toEqual(['new1', 'new1', 'new1'])
  })
})

describe('a server that refuses a renewed token too', () => {
  it('is logged in to again', async () => {
    const signal = AbortSignal.timeout(60_000)
    const server = `${origin}/mcp`
    answers.set('/.well-known/oauth-protected-resource/mcp', () => ({ body: { resource: server, authorization_servers: [origin] } }))
    answers.set('/.well-known/oauth-authorization-server', () => ({
      body: {
        issuer: origin,
        authorization_endpoint: `${origin}/authorize`,
        token_endpoint: `${origin}/token`,
        registration_endpoint: `${origin}/register`,
        code_challenge_methods_supported: ['S256'],
      },
    }))
    answers.set('/register', () => ({ status: 201, body: { client_id: 'c' } }))
    const grants: (string | null)[] = []
    answers.set('/token', (_request, body) => {
      grants.push(new URLSearchParams(body).get('grant_type'))
      return { body: { access_token: `t${grants.length}`, token_type: 'Bearer', refresh_token: 'r' } }
    })
    const visit = (address: string) => {
      const { searchParams } = new URL(address)
      const back = new URL(searchParams.get('redirect_uri') ?? '')
      back.search = new URLSearchParams({ code: 'x', state: searchParams.get('state') ?? '' }).toString()
      void fetch(back).catch(() => {}) // the login itself says what is missing
    }
    const login = new ServerLogin({ server, http, store: createMemoryCredentials(), steps: { visit, clientName: 'test' } })
    await login.logIn(signal)
    expect(await login.token(signal)).toBe('t1')
    for (const token of ['t2', 't3']) {
      expect(await login.refused({ status: 401, challenge: 'Bearer error="invalid_token"' }, signal)).toBe(true)
      expect(await login.token(signal)).toBe(token)
    }
    expect(grants).toEqual(['authorization_code', 'refresh_token', 'authorization_code'])
  })
})
