import type { Identity } from '@thv/auth/incoming/authenticator'
import type { UpstreamTokenResult, UpstreamTokens } from '@thv/authserver/upstream-tokens'
import type { Exchange } from '@thv/http/server/exchange'
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
  return { caller: of, backend: { name: 'b', transport: 'http' }, exchange, outgoing: undefined, credentials: undefined, trace: undefined }
}

function injection(result: UpstreamTokenResult | Promise<UpstreamTokenResult>, more: Partial<UpstreamInjectionOptions> = {}) {
  const tokens = { use: vi.fn(() => result), rejected: vi.fn(), needsLogin: vi.fn() }
  const resource = { authorizationServers: [ISSUER], scopes: [], url: 'https://mcp.example.com/mcp' }
  const options = { provider: 'github', issuer: ISSUER, resource, ...more }
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
