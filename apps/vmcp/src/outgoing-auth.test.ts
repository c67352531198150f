import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { StreamableHTTPClientTransport } from '@modelcontextprotocol/client'
import { CLIENT, startTokenServer } from '@thv/auth/outgoing/testing/token-server'
import { startFixture } from '@thv/testkit/mcp/fixture'
import { connectSdk } from '@thv/testkit/mcp/testing/sdk-client'
import { startOidcServer } from '@thv/testkit/oidc/oidc-server'
import { describe, expect, it } from 'vitest'
import { startGuardedBackend } from './testing/guarded-backend.ts'
import { startTestVmcp, type TestVmcp } from './testing/test-vmcp.ts'

const SECRET = { CLIENT_SECRET: CLIENT.secret }
const prefix = { aggregation: { conflictResolution: 'prefix' } }
const anonymous = (vmcp: TestVmcp) => connectSdk(new StreamableHTTPClientTransport(new URL(vmcp.url)), 'legacy')

function auth(backends: Readonly<Record<string, object>>, more: object = {}) {
  return { ...prefix, outgoingAuth: { source: 'inline', backends }, ...more }
}

describe('authentication to backends', () => {
  it('[002-140] [004-096] sends a bearer token from a variable and from a file, to its own backend alone, over forwarded headers', async () => {
    const folder = mkdtempSync(join(tmpdir(), 'vmcp-auth-'))
    await using stack = new AsyncDisposableStack()
    stack.defer(() => rmSync(folder, { recursive: true }))
    writeFileSync(join(folder, 'token'), 'from-file\n')
    const [a, b, c] = [
      stack.use(await startGuardedBackend()),
      stack.use(await startGuardedBackend()),
      stack.use(await startGuardedBackend()),
    ]
    c.accepts = () => true
    const vmcp = stack.use(
      await startTestVmcp({
        backends: { a: a.url, b: b.url, c: c.url },
        backend: { type: 'entry' },
        env: { TOKEN: 'from-env', TOOLHIVE_HEADER_FORWARD_A: JSON.stringify({ addPlaintextHeaders: { Authorization: 'weak' } }) },
        config: auth({
          a: { type: 'bearer_token', bearerToken: { tokenEnv: 'TOKEN' } },
          b: { type: 'bearer_token', bearerToken: { tokenFile: join(folder, 'token') } },
        }),
      }),
    )
    await using client = await anonymous(vmcp)
    expect(await client.text('a_hello')).toBe('Bearer from-env')
    expect(await client.text('b_hello')).toBe('Bearer from-file')
    await client.text('c_hello')
    expect(new Set(c.seen)).toEqual(new Set([undefined]))
    expect(vmcp.logged.join()).not.toMatch(/from-env|from-file/)
  })

  it('gets one token with client credentials, renews it after a 401, and says so when that is refused too', async () => {
    await using tokens = await startTokenServer()
    await using backend = await startGuardedBackend()
    const clientCredentials = { clientId: CLIENT.id, clientSecretEnv: 'CLIENT_SECRET', tokenUrl: tokens.url, scopes: ['a'] }
    await using vmcp = await startTestVmcp({
      backends: { x: backend.url },
      env: SECRET,
      config: auth({ x: { type: 'client_credentials', clientCredentials } }),
    })
    await using client = await anonymous(vmcp)
    await Promise.all(Array.from({ length: 20 }, () => client.text('x_hello')))
    expect(await client.text('x_hello')).toBe('Bearer issued-1')
    expect(tokens.forms).toHaveLength(1)

    backend.accepts = (value) => value === 'Bearer issued-2'
    expect(await client.text('x_hello')).toBe('Bearer issued-2')
    expect(tokens.forms).toHaveLength(2)
    backend.accepts = () => false
    await expect(client.text('x_hello')).rejects.toThrow(/[Cc]redentials refused/)
    expect(vmcp.logged.join()).not.toMatch(/issued|p%ss/)
  })

  it('[002-139] [002-142] [004-006] [004-007] [004-026] [004-040] exchanges the token of each caller when a call goes out, and shows each the lists of its own', async () => {
    await using stack = new AsyncDisposableStack()
    const idp = stack.use(await startOidcServer())
    const tokens = stack.use(await startTokenServer())
    const caller = (value: string | undefined) => /\.for\.[^.]*\.([^.]*)/.exec(value ?? '')?.[1]
    const subject = (value: string) => JSON.parse(Buffer.from(caller(value) ?? '', 'base64url').toString()).sub as string
    const backend = stack.use(await startGuardedBackend({ toolOf: (value) => `tool_of_${subject(value)}` }))
    backend.accepts = (value) => caller(value) !== undefined
    const plain = stack.use(await startGuardedBackend())
    plain.accepts = () => true
    const oidc = { issuer: idp.issuer, audience: 'tests', protectedResourceAllowPrivateIp: true, insecureAllowHttp: true }
    const tokenExchange = { tokenUrl: tokens.url, clientId: CLIENT.id, clientSecretEnv: 'CLIENT_SECRET', audience: 'x' }
    const vmcp = stack.use(
      await startTestVmcp({
        backends: { x: backend.url, plain: plain.url },
        backend: { type: 'entry' },
        env: { ...SECRET, TOOLHIVE_HEADER_FORWARD_X: JSON.stringify({ addPlaintextHeaders: { authorization: 'weak', 'x-note': 'n' } }) },
        config: auth({ x: { type: 'token_exchange', tokenExchange } }, { incomingAuth: { type: 'oidc', oidc } }),
      }),
    )
    // Neither starting nor checking health asks for a token.
    for (const member of vmcp.offer.members) await member.observed(() => member.shared.ping()).catch(() => undefined)
    expect(tokens.backend.requests).toHaveLength(0)
    expect(vmcp.offer.roster.get('x')?.health.status).toBe('healthy')

    const given = new Map<string, string>()
    const connect = async (sub: string, mode: 'legacy' | 'modern') => {
      const token = given.get(sub) ?? (await idp.token({ claims: { sub } }))
      given.set(sub, token)
      const requestInit = { headers: { authorization: `Bearer ${token}` } }
      return connectSdk(new StreamableHTTPClientTransport(new URL(vmcp.url), { requestInit }), mode)
    }
    for (const mode of ['legacy', 'modern'] as const) {
      await using ada = await connect('ada', mode)
      await using bob = await connect('bob', mode)
      const names = async ({ client }: typeof ada) => (await client.listTools()).tools.map(({ name }) => name)
      expect(await names(ada)).toEqual(['plain_hello', 'x_tool_of_ada'])
      expect(await names(bob)).toEqual(['plain_hello', 'x_tool_of_bob'])
      expect(subject(await ada.text('x_tool_of_ada'))).toBe('ada')
      expect(subject(await bob.text('x_tool_of_bob'))).toBe('bob')
      await expect(bob.text('x_tool_of_ada')).rejects.toThrow()
    }
    expect(tokens.forms).toHaveLength(2) // one per caller, for both eras, lists and calls
    for (const token of given.values()) {
      expect(backend.seen).not.toContain(`Bearer ${token}`)
      expect(plain.seen).not.toContain(`Bearer ${token}`)
    }
    expect(backend.seen).not.toContain('weak')
    expect(new Set(plain.seen)).toEqual(new Set([undefined]))
    expect(backend.backend.requests.some(({ headers }) => headers['x-note'] === 'n')).toBe(true)

    // A token that the endpoint does not accept any more fails the call alone, and names the backend.
    tokens.answer = (_request, response) =>
      void response.writeHead(400, { 'content-type': 'application/json' }).end('{"error":"invalid_grant"}')
    await using eve = await connect('eve', 'legacy')
    expect((await eve.client.listTools()).tools.map(({ name }) => name)).toEqual(['plain_hello'])
    expect(await eve.text('plain_hello')).toBe('')
    expect(vmcp.offer.roster.get('x')?.health.status).toBe('healthy')
  })

  it('exchanges tokens of callers where bytes pass', async () => {
    await using stack = new AsyncDisposableStack()
    const idp = stack.use(await startOidcServer())
    const tokens = stack.use(await startTokenServer())
    const backend = stack.use(await startFixture({ era: 'modern', only: ['report_request'] }))
    const oidc = { issuer: idp.issuer, audience: 'tests', protectedResourceAllowPrivateIp: true, insecureAllowHttp: true }
    const tokenExchange = { tokenUrl: tokens.url, clientId: CLIENT.id, clientSecretEnv: 'CLIENT_SECRET', audience: 'x' }
    const vmcp = stack.use(
      await startTestVmcp({
        backends: { x: backend.url },
        env: SECRET,
        config: auth({ x: { type: 'token_exchange', tokenExchange } }, { incomingAuth: { type: 'oidc', oidc } }),
      }),
    )
    const token = await idp.token({ claims: { sub: 'ada' } })
    const requestInit = { headers: { authorization: `Bearer ${token}` } }
    await using ada = await connectSdk(new StreamableHTTPClientTransport(new URL(vmcp.url), { requestInit }), 'modern')
    await ada.client.listTools()
    for (let i = 0; i < 3; i++) {
      const { headers } = await ada.json('x_report_request')
      expect(headers).toMatchObject({ authorization: `Bearer issued-1.for.${token}` })
    }
    expect(tokens.forms).toHaveLength(1)
  })

  it('passes the token of callers to a backend that shares issuer and audience, and to no other', async () => {
    await using stack = new AsyncDisposableStack()
    const idp = stack.use(await startOidcServer())
    const [own, other] = [stack.use(await startGuardedBackend()), stack.use(await startGuardedBackend())]
    other.accepts = () => true
    const oidc = { issuer: idp.issuer, audience: 'tests', protectedResourceAllowPrivateIp: true, insecureAllowHttp: true }
    const vmcp = stack.use(
      await startTestVmcp({
        backends: { own: own.url, other: other.url },
        config: auth({ own: { type: 'caller_token' } }, { incomingAuth: { type: 'oidc', oidc } }),
      }),
    )
    const token = await idp.token({ claims: { sub: 'ada' } })
    const requestInit = { headers: { authorization: `Bearer ${token}` } }
    await using ada = await connectSdk(new StreamableHTTPClientTransport(new URL(vmcp.url), { requestInit }), 'modern')
    expect((await ada.client.listTools()).tools.map(({ name }) => name)).toEqual(['other_hello', 'own_hello'])
    expect(await ada.text('own_hello')).toBe(`Bearer ${token}`)
    await ada.text('other_hello')
    expect(new Set(other.seen)).toEqual(new Set([undefined]))
  })
})
