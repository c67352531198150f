import { connect } from 'node:net'
import { WireClient } from '@thv/gateway/testing/wire-client'
import { startOidcServer } from '@thv/testkit/oidc/oidc-server'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { type GuardedRunner, startGuardedRunner } from './testing/guarded-runner.ts'

let guarded: GuardedRunner

beforeAll(async () => {
  guarded = await startGuardedRunner({ server: { metricsHere: true }, config: { oidc_config: { scopes: ['mcp'] } } })
})
afterAll(() => guarded[Symbol.asyncDispose]())

describe('a runner with oidc_config', () => {
  it.each([
    ['POST', '/mcp'],
    ['GET', '/mcp'],
    ['DELETE', '/mcp'],
    ['PUT', '/mcp'],
    ['POST', '/mcp/'],
    ['GET', '/metrics'],
  ])('%s %s without a token is 401, and says where to get one', async (method, path) => {
    const { base } = guarded.runner
    const answer = await fetch(base + path, { method, ...(method === 'POST' && { body: '{}' }) })
    expect(answer.status).toBe(401)
    const challenge = answer.headers.get('www-authenticate') ?? ''
    expect(challenge).toContain(`resource_metadata="${base}/.well-known/oauth-protected-resource${path}"`)
    expect(challenge).toContain('scope="mcp"')
    expect(await answer.json()).toMatchObject({ error: { code: 401 } })
  })

  it.each(['POST', 'GET', 'DELETE'])('%s / without a token is 401', async (method) => {
    const headers = { accept: 'application/json, text/event-stream' }
    const answer = await fetch(`${guarded.runner.base}/`, { method, headers, ...(method === 'POST' && { body: '{}' }) })
    expect([answer.status, answer.headers.get('www-authenticate')]).toEqual([401, expect.stringContaining('resource_metadata=')])
  })

  it('answers before the body has come', async () => {
    const { hostname, port } = new URL(guarded.runner.base)
    const socket = connect(Number(port), hostname)
    socket.write('POST /mcp HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: 100000\r\n\r\n')
    const { value } = await socket.iterator({ destroyOnReturn: true }).next()
    socket.destroy()
    expect(String(value)).toMatch(/^HTTP\/1.1 401 /)
  })

  it.each(['/health', '/ready', '/.well-known/oauth-protected-resource'])('serves %s to everyone', async (path) => {
    expect((await fetch(guarded.runner.base + path)).status).toBe(200)
  })

  it.each(['', '/mcp', '/mcp/', '/anything'])('tells the address that was called, with its path %j', async (path) => {
    const { base } = guarded.runner
    expect(await (await fetch(`${base}/.well-known/oauth-protected-resource${path}`)).json()).toEqual({
      resource: `${base}${path}`,
      authorization_servers: [guarded.idp.issuer],
      bearer_methods_supported: ['header'],
      scopes_supported: ['mcp'],
    })
  })

  it('serves a token in both eras, and shows the backend nothing of it', async () => {
    const client = await guarded.client('ada')
    client.headers = { ...client.headers, cookie: 'sid=secret-cookie', 'x-other': 'kept' }
    await client.initialize()
    for (const answer of [await client.call('report_request'), await client.modernCall('report_request')]) {
      expect(answer.status).toBe(200)
      expect(answer.text).toContain('kept')
      expect(answer.text).not.toMatch(/bearer|secret-cookie/i)
    }
  })

  it('asks the provider for nothing while tokens are known', async () => {
    const { idp } = guarded
    const client = await guarded.client('ada')
    await client.modernCall('echo')
    const before = [idp.hits('/jwks'), idp.hits('/.well-known/openid-configuration')]
    for (let i = 0; i < 20; i++) expect((await client.modernCall('echo')).status).toBe(200)
    expect([idp.hits('/jwks'), idp.hits('/.well-known/openid-configuration')]).toEqual(before)
  })
})

it('forward_token lets the backend have the Authorization header, and nothing else', async () => {
  await using forwarding = await startGuardedRunner({ config: { oidc_config: { forward_token: true } } })
  const client = await forwarding.client('ada')
  const sent = client.headers['authorization'] ?? 'none'
  client.headers = { ...client.headers, cookie: 'sid=secret-cookie' }
  const { text } = await client.modernCall('report_request')
  expect(text).toContain(sent)
  expect(text).not.toContain('secret-cookie')
})

describe('introspection', () => {
  it('is needed for opaque tokens', async () => {
    const token = await guarded.idp.token({ format: 'opaque', claims: { sub: 'ada' } })
    const client = new WireClient(guarded.runner.url, { authorization: `Bearer ${token}` })
    expect((await client.modernCall('echo')).status).toBe(401)
    expect(guarded.idp.hits('/token/introspection')).toBe(0)
  })

  it('accepts opaque tokens, asks once for each, and fails closed', async () => {
    await using idp = await startOidcServer()
    const oidc = {
      ...{ issuer: idp.issuer, introspection_url: idp.introspectionUrl },
      ...{ client_id: idp.clientId, client_secret: idp.clientSecret },
    }
    await using opaque = await startGuardedRunner({ config: { oidc_config: oidc } })
    const authorization = `Bearer ${await idp.token({ format: 'opaque', audience: 'tests' })}`
    const client = new WireClient(opaque.runner.url, { authorization })
    for (let i = 0; i < 3; i++) expect((await client.modernCall('echo')).status).toBe(200)
    expect(idp.hits('/token/introspection')).toBe(1)
    const later = new WireClient(opaque.runner.url, { authorization: `Bearer ${await idp.token({ format: 'opaque', audience: 'tests' })}` })
    idp.fault = 'down'
    const answer = await later.modernCall('echo')
    expect([answer.status, answer.headers.get('retry-after')]).toEqual([503, expect.stringMatching(/^\d+$/)])
    expect(answer.headers.get('www-authenticate')).toBeNull()
    expect((await client.modernCall('echo')).status).toBe(200) // what is known goes on
  })
})
