import { createHook } from 'node:async_hooks'
import { type FakeProvider, type SigningKey, signingKey, startFakeProvider } from '@thv/auth/incoming/testing/fake-provider'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { compilePipeline } from '../pipeline/pipeline.ts'
import { ANONYMOUS, type MessageContext } from '../pipeline/request-context.ts'
import { testContext } from '../testing/test-context.ts'
import { testExchange } from '../testing/test-exchange.ts'
import { createAuthenticate } from './authenticate.ts'
import { createChallenges } from './challenges.ts'
import { principalOf } from './principal.ts'

let key: SigningKey
let idp: FakeProvider

beforeAll(async () => {
  key = await signingKey('k')
  idp = await startFakeProvider(key)
})
afterAll(() => idp[Symbol.asyncDispose]())

const resource = { authorizationServers: ['https://idp.example.com'], scopes: ['mcp', 'tools'] }
const challenges = createChallenges({ realm: 'test', resource })
const make = (forwardToken = false) =>
  createAuthenticate({ forwardToken }, { authenticator: idp.authenticator(), challenges, clock: idp.clock })

function contextOf(authorization: string | readonly string[] | undefined, path = '/mcp'): MessageContext {
  const headers = { host: 'mcp.example.com:8080', ...(authorization !== undefined && { Authorization: authorization }) }
  return testContext({ id: 1, method: 'ping' }, { exchange: testExchange(headers, path), route: path })
}

describe('the caller', () => {
  it('is settled from the token, once for all requests that carry it', async () => {
    const { open } = make()
    const token = await idp.token()
    const [first, second] = [contextOf(`Bearer ${token}`), contextOf(`bearer ${token}`)]
    expect(await open?.(first)).toBeUndefined()
    expect(first.caller).toMatchObject({ token, identity: { subject: 'ada', issuer: idp.issuer } })
    expect(open?.(second)).toBeUndefined()
    expect(second.caller).toBe(first.caller)
  })

  it('has the same principal with another token of the same subject, and another one with any other issuer or subject', async () => {
    const { open } = make()
    const principal = async (claims: object) => {
      const context = contextOf(`Bearer ${await idp.token({ claims: { ...claims } })}`)
      expect(await open?.(context)).toBeUndefined()
      return context.caller.principal
    }
    const ada = await principal({})
    expect(await principal({ jti: 'another' })).toBe(ada)
    expect(await principal({ sub: 'eve' })).not.toBe(ada)
    expect(ada).toBe(principalOf({ issuer: idp.issuer, subject: 'ada' }))
    const pairs = [
      ['https://a', 'b'],
      ['https://a"', 'b'],
      ['https://a', '"b'],
      ['https://ab', ''],
    ] as const
    expect(new Set(pairs.map(([issuer, subject]) => principalOf({ issuer, subject }))).size).toBe(pairs.length)
  })

  it('stays anonymous when the token is rejected', async () => {
    const context = contextOf('Bearer nonsense')
    expect(await make().open?.(context)).toMatchObject({ httpStatus: 401 })
    expect(context.caller).toBe(ANONYMOUS)
  })
})

describe('a known token', () => {
  it('takes no promise and no timer', async () => {
    const pipeline = compilePipeline([make()])
    const context = contextOf(`Bearer ${await idp.token()}`)
    await pipeline.open(context)
    const made: string[] = []
    const hook = createHook({ init: (_id, type) => void made.push(type) }).enable()
    const cold = pipeline.open(contextOf(`Bearer ${'x'.repeat(20)}`))
    const counted = made.splice(0).length
    for (let i = 0; i < 100; i++) if (pipeline.open(context) !== undefined) throw new Error('not synchronous')
    hook.disable()
    await cold
    expect(counted).toBeGreaterThan(0)
    expect(made).toEqual([])
  })
})

describe('challenges', () => {
  const METADATA = 'resource_metadata="http://mcp.example.com:8080/.well-known/oauth-protected-resource/mcp"'

  it('say where to get a token, and nothing of an error to a client that sent nothing', () => {
    expect(make().open?.(contextOf(undefined))).toMatchObject({
      error: 'unauthenticated',
      httpStatus: 401,
      headers: { 'www-authenticate': `Bearer realm="test", ${METADATA}, scope="mcp tools"` },
    })
  })

  it.each([
    ['Basic dTpw', 'invalid_request', 'missing or malformed authorization header'],
    [['Bearer a', 'Bearer b'], 'invalid_request', 'missing or malformed authorization header'],
    ['Bearer nonsense', 'invalid_token', 'token validation failed'],
  ])('tell %j its kind of mistake', async (authorization, error, description) => {
    const rejection = await make().open?.(contextOf(authorization))
    expect(rejection?.headers?.['www-authenticate']).toBe(
      `Bearer realm="test", error="${error}", error_description="${description}", ${METADATA}, scope="mcp tools"`,
    )
  })

  it('point a client of HTTP+SSE to the endpoint that it knows', () => {
    const rejection = make().open?.(contextOf(undefined, '/messages'))
    expect(rejection).toMatchObject({ headers: { 'www-authenticate': expect.stringContaining('/oauth-protected-resource/sse"') } })
    const atRoot = make().open?.({ ...contextOf(undefined, '/'), route: '/messages' })
    expect(atRoot).toMatchObject({ headers: { 'www-authenticate': expect.stringContaining('/oauth-protected-resource"') } })
  })

  it('name all scopes that a call needs', () => {
    expect(challenges.insufficientScope(contextOf(undefined), ['mcp', 'files:write'])).toMatchObject({
      error: 'insufficient_scope',
      httpStatus: 403,
      headers: {
        'www-authenticate': `Bearer realm="test", error="insufficient_scope", error_description="the call needs further scopes", ${METADATA}, scope="mcp files:write"`,
      },
    })
  })

  it('are no 401 when no provider can be asked', async () => {
    await using down = await startFakeProvider(key)
    const token = await down.token()
    for (const path of ['/keys', '/.well-known/openid-configuration', '/.well-known/oauth-authorization-server'])
      down.routes.set(path, (_request, response) => void response.writeHead(500).end())
    const { open } = createAuthenticate({ forwardToken: false }, { authenticator: down.authenticator(), challenges, clock: down.clock })
    const rejection = await open?.(contextOf(`Bearer ${token}`))
    expect(rejection).toMatchObject({ error: 'identity_provider_unavailable', httpStatus: 503 })
    expect(rejection?.headers?.['retry-after']).toMatch(/^[1-9]\d?$/)
    expect(rejection?.headers).not.toHaveProperty('www-authenticate')
  })
})

it('withholds what authenticates the client here, unless the backend may have the token', () => {
  const headersOf = (forwardToken: boolean) => {
    const set = { 'x-kept': '1' }
    compilePipeline([make(forwardToken)]).headers(contextOf('Bearer x'), set)
    return set
  }
  expect(headersOf(false)).toEqual({ 'x-kept': '1', authorization: undefined, cookie: undefined, 'proxy-authorization': undefined })
  expect(headersOf(true)).toEqual({ 'x-kept': '1', cookie: undefined, 'proxy-authorization': undefined })
})
