import { CLIENT, startTokenServer } from '@thv/auth/outgoing/testing/token-server'
import type { WireClient } from '@thv/gateway/testing/wire-client'
import { type Backend, startBackend } from '@thv/http/testing/backend'
import { startFixture } from '@thv/testkit/mcp/fixture'
import { afterEach, describe, expect, it } from 'vitest'
import { runDocument } from './testing/run-document.ts'

const open: AsyncDisposable[] = []
afterEach(async () => {
  for (const one of open.splice(0).toReversed()) await one[Symbol.asyncDispose]()
})

async function run(remote: string, document: object, env: Record<string, string> = {}) {
  const running = await runDocument(remote, document, env)
  open.push(running)
  return running
}

/** The headers that the fixture saw in a call. */
async function seenBy(client: WireClient, headers: Record<string, string>): Promise<Record<string, string>> {
  const answer = await client.modernCall('report_request', {}, { headers })
  expect(answer.status).toBe(200)
  const text = answer.messages.at(-1).result.content[0].text
  return JSON.parse(text).headers
}

/** A backend that takes one token only. */
async function picky(good: () => string): Promise<Backend> {
  const backend = await startBackend(({ headers, body }, response) => {
    if (headers.authorization !== good()) return void response.writeHead(401, { 'www-authenticate': 'Bearer error="backend"' }).end()
    const { id } = JSON.parse(body) as { id: number }
    response.setHeader('content-type', 'application/json')
    response.end(JSON.stringify({ jsonrpc: '2.0', id, result: { content: [] } }))
  })
  open.push(backend)
  return backend
}

const CLIENT_HEADERS = { authorization: 'Bearer of-the-client', 'x-api-key': 'of-the-client' }

describe('a runner with credentials for its backend', () => {
  it.each<[string, object, Record<string, string>, Record<string, string>]>([
    [
      'header injection',
      {
        header_injection_config: { header_name: 'X-Api-Key', header_value_env: 'KEY' },
        header_forward: { add_plaintext_headers: { 'X-Api-Key': 'weak' } },
      },
      { KEY: 'strong' },
      { 'x-api-key': 'strong' },
    ],
    ['a bearer token', { remote_auth_config: { bearer_token: 'abc' } }, {}, { authorization: 'Bearer abc' }],
  ])('sends %s instead of what the client sent', async (_, document, env, expected) => {
    const fixture = await startFixture({ era: 'modern' })
    open.push(fixture)
    const { client } = await run(fixture.url, document, env)
    expect(await seenBy(client, CLIENT_HEADERS)).toMatchObject(expected)
  })

  it('exchanges tokens and uses client credentials', async () => {
    const fixture = await startFixture({ era: 'modern' })
    const tokens = await startTokenServer()
    open.push(fixture, tokens)
    const exchange = { token_exchange_config: { token_url: tokens.url, client_id: CLIENT.id } }
    const exchanging = await run(fixture.url, exchange, { TOOLHIVE_TOKEN_EXCHANGE_CLIENT_SECRET: CLIENT.secret })
    for (let i = 0; i < 3; i++)
      expect((await seenBy(exchanging.client, CLIENT_HEADERS))['authorization']).toBe('Bearer issued-1.for.of-the-client')
    expect(tokens.backend.requests).toHaveLength(1)

    const own = { remote_auth_config: { client_id: CLIENT.id, client_secret: CLIENT.secret, token_url: tokens.url } }
    const { client } = await run(fixture.url, own)
    for (let i = 0; i < 3; i++) expect((await seenBy(client, CLIENT_HEADERS))['authorization']).toBe('Bearer issued-2')
    expect(tokens.backend.requests).toHaveLength(2)
  })

  it('asks for another token when the backend rejects one, once, and then answers 502', async () => {
    const tokens = await startTokenServer()
    open.push(tokens)
    let good = 'Bearer issued-2.for.a'
    const backend = await picky(() => good)
    const exchange = { token_exchange_config: { token_url: tokens.url, client_id: CLIENT.id } }
    const { client, log } = await run(`${backend.url}/mcp`, exchange, { TOOLHIVE_TOKEN_EXCHANGE_CLIENT_SECRET: CLIENT.secret })
    const call = () => client.modernCall('x', {}, { headers: { authorization: 'Bearer a' } })
    expect((await call()).status).toBe(200)
    good = 'Bearer something-else'
    const start = performance.now()
    for (let i = 0; i < 3; i++) {
      const answer = await call()
      expect(answer).toMatchObject({ status: 502, messages: [{ error: { code: 5022 } }] })
      expect(answer.headers.get('www-authenticate')).toBeNull()
    }
    // A backend that rejects whatever it gets does not cost the token endpoint a request per call: one in five seconds at most.
    expect(tokens.forms.length).toBeGreaterThanOrEqual(2)
    expect(tokens.forms.length).toBeLessThanOrEqual(2 + Math.ceil((performance.now() - start) / 5_000))
    expect(log.lines.join()).not.toContain('issued-')
  })

  it('answers 401 with a challenge where there is no token to exchange', async () => {
    const tokens = await startTokenServer()
    const fixture = await startFixture({ era: 'modern' })
    open.push(fixture, tokens)
    const { client } = await run(fixture.url, { token_exchange_config: { token_url: tokens.url } })
    const answer = await client.modernCall('report_request')
    expect(answer).toMatchObject({ status: 401, messages: [{ error: { code: 401 } }] })
    expect(answer.headers.get('www-authenticate')).toBe('Bearer realm="toolhive"')
  })
})
