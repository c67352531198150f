import type { Identity } from '@thv/auth/incoming/authenticator'
import type { UpstreamKey, UpstreamTokenResult, UpstreamTokens } from '@thv/authserver/upstream-tokens'
import type { Exchange } from '@thv/http/server/exchange'
import type { JsonObject } from '@thv/mcp/json-rpc'
import type { ParsedMessage } from '@thv/mcp/parse-body'
import type { Rejection } from '@thv/mcp/wire-errors'
import { describe, expect, it, vi } from 'vitest'
import type { Caller, Hop } from '../pipeline/request-context.ts'
import { createUpstreamInjection, type UpstreamInjectionOptions } from './upstream-injection.ts'

const ISSUER = 'https://mcp.example.com'

function caller(more: { issuer?: string; scope?: unknown } = {}): Caller {
  const { issuer = ISSUER, scope = 'openid mcp' } = more
  const identity: Identity = { subject: 'ada', issuer, provider: 'own', claims: { scope, tsid: 'f1' } as Identity['claims'] }
  return { principal: 'p', identity, token: 'of-the-caller' }
}

function hopOf(of: Caller | undefined): Hop {
  const exchange = { path: '/mcp', headers: { host: 'mcp.example.com' } } as unknown as Exchange
  const rest = { era: 'modern' as const, outgoing: undefined, credentials: undefined, trace: undefined }
  return { caller: of, backend: { name: 'b', transport: 'http' }, exchange, ...rest }
}

function injection(
  result: UpstreamTokenResult | Promise<UpstreamTokenResult>,
  more: Partial<UpstreamInjectionOptions> & Partial<Pick<UpstreamTokens, 'hasJoined'>> = {},
) {
  const { hasJoined = () => false, ...options0 } = more
  const tokens = {
    ...{ use: vi.fn(() => result), rejected: vi.fn(), needsLogin: vi.fn(), hasJoined },
    connectUrl: vi.fn((key: UpstreamKey, family: string) => `${ISSUER}/oauth/connect/${key.provider}?link=${key.account}-${family}`),
  }
  const resource = { authorizationServers: [ISSUER], scopes: [], url: 'https://mcp.example.com/mcp' }
  const options = { provider: 'github', issuer: ISSUER, resource, ...options0 }
  return { tokens, middleware: createUpstreamInjection(options, tokens as unknown as UpstreamTokens) }
}

const usable: UpstreamTokenResult = { kind: 'usable', accessToken: 'of-github' }

describe('the token of an upstream provider', () => {
  it('goes to the backend instead of the token of the caller, without a promise when it is near', () => {
    const { middleware, tokens } = injection(usable)
    const [hop, next] = [hopOf(caller()), hopOf(caller())]
    expect(middleware.prepare?.(hop)).toBeUndefined()
    expect(hop.credentials).toEqual({ authorization: 'Bearer of-github' })
    expect(middleware.withholds).toEqual(['authorization'])
    expect(tokens.use).toHaveBeenCalledWith({ account: 'ada', provider: 'github' })
    middleware.prepare?.(next)
    expect(next.credentials).toBe(hop.credentials) // nothing is made per call
  })

  it('goes in a header of its own where one is named', async () => {
    const { middleware } = injection(Promise.resolve(usable), { header: 'X-GitHub-Token' })
    const hop = hopOf(caller())
    expect(await middleware.prepare?.(hop)).toBeUndefined()
    expect(hop.credentials).toEqual({ 'x-github-token': 'Bearer of-github' })
  })

  it.each([
    ['missing', 'insufficient_scope', 403],
    ['ended', 'invalid_token', 401],
  ] as const)('that is %s leads to a login at that provider alone', (kind, error, status) => {
    const { middleware, tokens } = injection({ kind })
    const rejection = middleware.prepare?.(hopOf(caller()))
    expect(rejection).toMatchObject({ httpStatus: status })
    // A client that refreshes at a 401 gets no further token, so that it comes to the login.
    expect(tokens.needsLogin.mock.calls).toEqual(kind === 'ended' ? [['f1', 'github']] : [])
    const { headers } = rejection as { headers: Record<string, string> }
    expect(headers['www-authenticate']).toBe(
      `Bearer realm="toolhive", error="${error}", error_description="the call needs a login to github", ` +
        'resource_metadata="https://mcp.example.com/.well-known/oauth-protected-resource/mcp", scope="openid mcp upstream:github"',
    )
  })

  it('that cannot be refreshed now is worth another try later', () => {
    const rejection = injection({ kind: 'unavailable', retryAfterMs: 2_500 }).middleware.prepare?.(hopOf(caller()))
    expect(rejection).toMatchObject({ httpStatus: 503, headers: { 'retry-after': '3' } })
  })

  it.each([
    ['a list', { scope: undefined, scp: ['mcp', 'upstream:github'] }],
    ['a text', { scope: 'mcp upstream:github' }],
  ])('of a login on demand needs its scope in the session, as %s', (_title, claims) => {
    const { middleware, tokens } = injection(usable, { isOnDemand: true })
    expect(middleware.prepare?.(hopOf(caller()))).toMatchObject({ httpStatus: 403 })
    expect(tokens.use).not.toHaveBeenCalled()
    const walked = caller()
    const hop = hopOf({ ...walked, identity: { ...(walked.identity as Identity), claims: claims as unknown as Identity['claims'] } })
    expect(middleware.prepare?.(hop)).toBeUndefined()
    expect(hop.credentials).toBeDefined()
  })

  it.each([
    ['now', true],
    ['after a look into the store', Promise.resolve(true)],
  ])('of a login on demand goes to a session that has joined it since, known %s', async (_title, hasJoined) => {
    const { middleware } = injection(usable, { isOnDemand: true, hasJoined: () => hasJoined })
    const hop = hopOf(caller())
    expect(await middleware.prepare?.(hop)).toBeUndefined()
    expect(hop.credentials).toEqual({ authorization: 'Bearer of-github' })
  })

  it('of a login on demand is worth another try later while the store is away', async () => {
    const { middleware } = injection(usable, { isOnDemand: true, hasJoined: () => Promise.reject(new Error('away')) })
    expect(await middleware.prepare?.(hopOf(caller()))).toMatchObject({ httpStatus: 503, headers: { 'retry-after': '1' } })
  })

  describe('that is not there, for a client that opens links', () => {
    const call = (more: { method?: string; capabilities?: object; params?: object } = {}): ParsedMessage => {
      const { method = 'tools/call', capabilities = { elicitation: { url: {} } }, params = {} } = more
      const _meta = { 'io.modelcontextprotocol/clientCapabilities': capabilities }
      const message = { jsonrpc: '2.0' as const, id: 1, method, params: { name: 'x', ...params, _meta } as JsonObject }
      return { kind: 'request', id: 1, method, message, text: '' } as ParsedMessage
    }
    const asked = (outgoing: ParsedMessage, kind: 'missing' | 'ended' = 'missing') => {
      const { middleware, tokens } = injection({ kind })
      return { rejection: middleware.prepare?.({ ...hopOf(caller()), outgoing }) as Rejection, tokens }
    }

    it.each(['missing', 'ended'] as const)('is asked for with a link to the login (%s)', (kind) => {
      const { rejection, tokens } = asked(call(), kind)
      const params = { mode: 'url', url: `${ISSUER}/oauth/connect/github?link=ada-f1`, message: 'Log in to github, which this call needs.' }
      const inputRequests = { 'login-github': { method: 'elicitation/create', params } }
      expect(rejection).toMatchObject({ inBand: true, httpStatus: 200, result: { resultType: 'input_required', inputRequests } })
      // The session goes on: the user comes back to it.
      expect(tokens.needsLogin).not.toHaveBeenCalled()
    })

    it.each<[string, ParsedMessage]>([
      ['a client that declared forms alone', call({ capabilities: { elicitation: { form: {} } } })],
      ['a client that declared elicitation in general', call({ capabilities: { elicitation: {} } })],
      ['a client that declared nonsense', call({ capabilities: { elicitation: { url: 'yes' } } })],
      ['a list', call({ method: 'tools/list' })],
      ['a user who declined', call({ params: { inputResponses: { 'login-github': { action: 'decline' } } } })],
      ['a user who canceled', call({ params: { inputResponses: { 'login-github': { action: 'cancel' } } } })],
      ['a call that answers a question of the backend', call({ params: { requestState: 's', inputResponses: {} } })],
    ])('is a challenge for %s', (_title, message) => {
      const { rejection } = asked(message)
      expect(rejection.result).toBeUndefined()
      expect(rejection.headers?.['www-authenticate']).toContain('upstream:github')
    })

    it.each<[string, ParsedMessage, readonly object[] | undefined]>([
      ['a call', call({ capabilities: {} }), [{ url: `${ISSUER}/oauth/connect/github?link=ada-f1`, message: expect.any(String) }]],
      ['a list', call({ method: 'tools/list' }), undefined],
    ])('of the handshake era: %s keeps its challenge, with the link for the session to decide', (_title, outgoing, links) => {
      const { middleware } = injection({ kind: 'missing' })
      const rejection = middleware.prepare?.({ ...hopOf(caller()), era: 'legacy', outgoing }) as Rejection
      expect(rejection.result).toBeUndefined()
      expect(rejection.links).toEqual(links)
      expect(rejection.headers?.['www-authenticate']).toContain('upstream:github')
    })

    it('is asked for again when the user accepted and has not logged in', () => {
      const { rejection } = asked(call({ params: { inputResponses: { 'login-github': { action: 'accept' } } } }))
      expect(rejection.result).toBeDefined()
    })
  })

  it('is for users of our own server only', () => {
    const { middleware, tokens } = injection(usable)
    for (const other of [caller({ issuer: 'https://elsewhere.example' }), { principal: 'anonymous' }])
      expect(middleware.prepare?.(hopOf(other))).toMatchObject({ httpStatus: 401 })
    const own = hopOf(undefined)
    expect(middleware.prepare?.(own)).toBeUndefined()
    expect(own.credentials).toBeUndefined()
    expect(tokens.use).not.toHaveBeenCalled()
  })

  it('that the backend rejects is reported to the vault', () => {
    const { middleware, tokens } = injection(usable)
    const hop = hopOf(caller())
    middleware.prepare?.(hop)
    expect(middleware.credentialsRejected?.(hop)).toBe(true)
    expect(tokens.rejected).toHaveBeenCalledWith({ account: 'ada', provider: 'github' }, 'of-github')
    expect(middleware.credentialsRejected?.(hopOf(caller()))).toBe(false)
  })
})
