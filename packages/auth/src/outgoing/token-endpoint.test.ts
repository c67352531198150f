import type { ServerResponse } from 'node:http'
import { createOutbound } from '@thv/http/outbound/outbound'
import { systemClock, TestClock } from '@thv/kernel/clock'
import { afterEach, describe, expect, it } from 'vitest'
import { CLIENT, sendJson, startTokenServer, type TokenServer } from './testing/token-server.ts'
import { createTokenEndpoint, type TokenEndpoint, type TokenEndpointOptions } from './token-endpoint.ts'
import { TokenRequestFailed } from './token-request-failed.ts'

const open: AsyncDisposable[] = []
afterEach(async () => {
  for (const one of open.splice(0).toReversed()) await one[Symbol.asyncDispose]()
})

async function start(options: Partial<TokenEndpointOptions> = {}): Promise<{ server: TokenServer; endpoint: TokenEndpoint }> {
  const server = await startTokenServer()
  const outbound = createOutbound()
  open.push(outbound, server)
  const client = { id: CLIENT.id, secret: () => CLIENT.secret }
  const signal = new AbortController().signal
  return { server, endpoint: createTokenEndpoint({ url: () => server.url, client, outbound, clock: systemClock, signal, ...options }) }
}

const own = () => new URLSearchParams({ grant_type: 'client_credentials' })
const exchange = (subject = 'secret-subject') =>
  new URLSearchParams({
    grant_type: 'urn:ietf:params:oauth:grant-type:token-exchange',
    subject_token: subject,
    subject_token_type: 'urn:ietf:params:oauth:token-type:jwt',
  })

async function failureOf(asking: Promise<unknown>): Promise<TokenRequestFailed> {
  const failure = await asking.then(
    () => undefined,
    (error: unknown) => error,
  )
  if (!(failure instanceof TokenRequestFailed)) throw new TypeError(`not a failure: ${String(failure)}`)
  return failure
}

/** Again after a time limit of our own; a closed endpoint fails at once and every time. */
async function tried<T>(work: () => Promise<T>): Promise<T> {
  for (let left = 5; ; left--) {
    try {
      return await work()
    } catch (error) {
      if (left === 0 || !(error instanceof TokenRequestFailed) || error.scope === 'endpoint') throw error
    }
  }
}

describe('a token endpoint', () => {
  it('gets the form, the client as Basic, and gives token and lifetime', async () => {
    const { server, endpoint } = await start()
    expect(await endpoint.request(exchange(), { isExchange: true })).toEqual({
      token: 'issued-1.for.secret-subject',
      expiresInMs: 600_000,
    })
    expect(server.forms[0]?.has('client_id')).toBe(false)
  })

  it('gets the id of a client without a secret in the form', async () => {
    const { server, endpoint } = await start({ client: { id: 'public' } })
    server.answer = ({ body, headers }, response) =>
      sendJson(response, 200, {
        access_token: `${new URLSearchParams(body).get('client_id')}-${headers.authorization}`,
        token_type: 'bearer',
      })
    expect(await endpoint.request(own(), { isExchange: false })).toEqual({ token: 'public-undefined', expiresInMs: undefined })
  })

  it.each<[unknown, number | undefined]>([
    [undefined, undefined],
    ['300', 300_000],
    ['soon', undefined],
    [0, 0],
    [-5, 0],
    [1e12, 86_400_000],
  ])('expires_in %s', async (given, expected) => {
    const { server, endpoint } = await start()
    server.document = { expires_in: given }
    expect((await endpoint.request(own(), { isExchange: false })).expiresInMs).toBe(expected)
  })

  it.each<[string, number, object | string, TokenRequestFailed['kind']]>([
    ['an expired subject', 400, { error: 'invalid_grant' }, 'subject'],
    ['a revoked subject', 401, { error: 'invalid_token' }, 'subject'],
    ['a subject as RFC 8693 says', 400, { error: 'invalid_request' }, 'subject'],
    ['a subject in words', 400, { error: 'invalid_request', error_description: 'Invalid token' }, 'subject'],
    ['a request in words', 400, { error: 'invalid_request', error_description: 'Missing parameter: audience' }, 'refused'],
    ['a type', 400, { error: 'invalid_request', error_description: 'subject_token_type is not supported' }, 'refused'],
    ['the client', 401, { error: 'invalid_client' }, 'refused'],
    ['the target', 400, { error: 'invalid_target' }, 'refused'],
    ['the scope', 400, { error: 'invalid_scope' }, 'refused'],
    ['without a code', 403, 'forbidden', 'refused'],
    ['with a code that is none', 400, { error: 'a"b\n' }, 'refused'],
    ['a wrong path', 404, '<html>', 'refused'],
    ['a success that is no JSON', 200, '<html>', 'refused'],
    ['a success that is a list', 200, '[]', 'refused'],
    ['no token', 200, { token_type: 'Bearer', issued_token_type: 'x' }, 'refused'],
    ['a token with a line break', 200, { access_token: 'a\r\nX-Evil: 1', token_type: 'Bearer', issued_token_type: 'x' }, 'refused'],
    ['another token type', 200, { access_token: 'a', token_type: 'DPoP', issued_token_type: 'x' }, 'refused'],
    ['no issued type', 200, { access_token: 'a', token_type: 'Bearer' }, 'refused'],
    ['overload', 429, { error: 'slow_down' }, 'unavailable'],
    ['a failure', 500, { error: 'invalid_grant' }, 'unavailable'],
    ['a gateway', 502, '<html>', 'unavailable'],
  ])('refuses %s', async (_, status, body, kind) => {
    const { server, endpoint } = await start()
    server.answer = (_request, response) => void response.writeHead(status).end(typeof body === 'string' ? body : JSON.stringify(body))
    const failure = await failureOf(endpoint.request(exchange(), { isExchange: true }))
    expect(failure.kind).toBe(kind)
    expect(failure.message).not.toContain('secret-subject')
    expect(failure.message).not.toContain(CLIENT.secret)
  })

  it('is not followed to another address', async () => {
    const { server, endpoint } = await start()
    const elsewhere = await startTokenServer()
    open.push(elsewhere)
    server.answer = (_request, response) => void response.writeHead(307, { location: elsewhere.url }).end()
    expect((await failureOf(endpoint.request(own(), { isExchange: false }))).kind).toBe('refused')
    expect(elsewhere.backend.requests).toEqual([])
  })

  it('cannot answer with more than 64 KiB', async () => {
    const { server, endpoint } = await start()
    server.document = { padding: 'x'.repeat(70_000) }
    expect((await failureOf(endpoint.request(own(), { isExchange: false }))).kind).toBe('refused')
  })

  it('is never a metadata service', async () => {
    const { endpoint } = await start({ url: () => 'http://169.254.169.254/token' })
    expect((await failureOf(endpoint.request(own(), { isExchange: false }))).kind).toBe('refused')
  })

  it('is left alone for a while when no connection to it can be made', async () => {
    let asked = 0
    const { server, endpoint } = await start({
      clock: new TestClock(),
      url: () => {
        asked++
        return server.url
      },
    })
    await server[Symbol.asyncDispose]()
    expect(await failureOf(endpoint.request(own(), { isExchange: false }))).toMatchObject({ kind: 'unavailable', scope: 'endpoint' })
    const failure = await failureOf(endpoint.request(own(), { isExchange: false }))
    expect(failure).toMatchObject({ kind: 'unavailable', scope: 'endpoint', retryAfterMs: expect.any(Number) })
    expect(asked).toBe(1)
  })

  it.each<[string, number, (response: ServerResponse) => void]>([
    ['500', 10_000, (response) => void response.writeHead(500).end()],
    ['429 and to wait', 10_000, (response) => void response.writeHead(429, { 'retry-after': '7' }).end()],
    ['with a broken connection', 10_000, (response) => void response.destroy()],
    ['never', 1_000, () => {}],
  ])('goes on for others while it answers one subject %s', async (_, timeoutMs, upset) => {
    const { server, endpoint } = await start({ timeoutMs })
    const usual = { access_token: 'fine', token_type: 'Bearer', issued_token_type: 'x', expires_in: 60 }
    server.answer = ({ body }, response) => (body.includes('hostile') ? upset(response) : sendJson(response, 200, usual))
    for (let i = 0; i < 2; i++) {
      const failure = await failureOf(endpoint.request(exchange('hostile'), { isExchange: true }))
      expect(failure).toMatchObject({ kind: 'unavailable', scope: 'request' })
      // A loaded machine may be slow for everybody: that is not what is asked here.
      expect((await tried(() => endpoint.request(exchange('neighbor'), { isExchange: true }))).token).toBe('fine')
    }
  })

  it('says how long to wait', async () => {
    const { server, endpoint } = await start()
    server.answer = (_request, response) => void response.writeHead(503, { 'retry-after': '7' }).end()
    expect(await failureOf(endpoint.request(own(), { isExchange: false }))).toMatchObject({ kind: 'unavailable', retryAfterMs: 7_000 })
  })

  it('has a time limit', async () => {
    const { server, endpoint } = await start({ timeoutMs: 30 })
    server.answer = () => {}
    expect((await failureOf(endpoint.request(own(), { isExchange: false }))).kind).toBe('unavailable')
  })
})
