import { once } from 'node:events'
import { createServer, type RequestListener } from 'node:http'
import type { AddressInfo } from 'node:net'
import { createOutbound, type Outbound } from '@thv/http/outbound/outbound'
import { type Clock, systemClock, TestClock } from '@thv/kernel/clock'
import { describe, expect, it, vi } from 'vitest'
import { configOf } from '../testing/test-auth-server.ts'
import { createDocumentFetch, createMetadataDocuments, type DocumentAnswer, documentUrl } from './metadata-documents.ts'

const ID = 'https://app.example.com/oauth/client.json'
const DOCUMENT = { client_id: ID, client_name: 'App', redirect_uris: ['http://127.0.0.1/callback'] }
const config = configOf({
  issuer: 'https://mcp.example.com',
  allowed_audiences: ['https://mcp.example.com/mcp'],
  upstreams: [{ name: 'corp', type: 'oidc', oidc_config: { issuer_url: 'https://idp.example.com', client_id: 'x' } }],
  cimd: { enabled: true, cache_max_size: 2 },
})

function documents(answer: Partial<DocumentAnswer> = {}, clock = new TestClock()) {
  const fetched: string[] = []
  const rejected: string[] = []
  const found = createMetadataDocuments({
    config,
    clock,
    onRejected: (_, reason) => rejected.push(reason),
    fetch: async (url) => {
      fetched.push(url.href)
      const body = JSON.stringify({ ...DOCUMENT, client_id: url.href })
      return { status: 200, contentType: 'application/json', cacheControl: '', body, ...answer }
    },
  })
  return { ...found, fetched, rejected, clock }
}

describe('metadata documents of clients', () => {
  it('are clients like registered ones', async () => {
    const { find, fetched } = documents()
    expect(await find(ID)).toMatchObject({ client_name: 'App', redirect_uris: DOCUMENT.redirect_uris, token_endpoint_auth_method: 'none' })
    expect(await find(ID)).toBeDefined()
    expect(fetched).toEqual([ID])
  })

  it('are kept as long as Cache-Control says, or the fallback, and no more of them than configured', async () => {
    const short = documents({ cacheControl: 'max-age=60' })
    await short.find(ID)
    await short.clock.advance(59_000)
    await short.find(ID)
    expect(short.fetched).toHaveLength(1)
    await short.clock.advance(2_000)
    await short.find(ID)
    expect(short.fetched).toHaveLength(2)
    const never = documents({ cacheControl: 'no-store' })
    await never.find(ID)
    await never.clock.advance(6_000)
    await never.find(ID)
    expect(never.fetched).toHaveLength(2)
    const many = documents()
    for (const name of ['a', 'b', 'c', 'a']) await many.find(`https://app.example.com/${name}`)
    expect(many.fetched).toHaveLength(4)
  })

  it('are fetched once for many requests at once', async () => {
    const { find, fetched } = documents()
    await Promise.all(Array.from({ length: 50 }, () => find(ID)))
    expect(fetched).toHaveLength(1)
  })

  it.each<[string, Partial<DocumentAnswer>, RegExp]>([
    ['§4.1: another client_id', { body: JSON.stringify({ ...DOCUMENT, client_id: 'https://app.example.com/other' }) }, /another client_id/],
    ['§4.1: a secret', { body: JSON.stringify({ ...DOCUMENT, client_secret: 'x' }) }, /secret/],
    [
      '§4.1: a client that wants a secret',
      { body: JSON.stringify({ ...DOCUMENT, token_endpoint_auth_method: 'client_secret_basic' }) },
      /none/,
    ],
    ['§6: a redirect', { status: 302 }, /302/],
    ['§6: an error', { status: 500 }, /500/],
    ['§6: a page', { contentType: 'text/html' }, /not JSON/],
    ['§6: no JSON', { body: '{' }, /JSON/],
    ['§6: a deep document', { body: `{"client_id":"${ID}","a":${'['.repeat(50)}${']'.repeat(50)}}` }, /flat/],
    ['§6: no redirect URI', { body: JSON.stringify({ client_id: ID }) }, /redirect_uris/],
    ['§6: a script as redirect URI', { body: JSON.stringify({ ...DOCUMENT, redirect_uris: ['javascript:alert(1)'] }) }, /redirect URI/],
  ])('reject %s, and are not fetched again at once', async (_, answer, reason) => {
    const { find, fetched, rejected } = documents(answer)
    expect(await find(ID)).toBeUndefined()
    expect(await find(ID)).toBeUndefined()
    expect(rejected).toEqual([expect.stringMatching(reason)])
    expect(fetched).toHaveLength(1)
  })

  it.each([
    'http://app.example.com/client.json',
    'https://app.example.com/',
    'https://app.example.com',
    'https://user@app.example.com/c',
    'https://app.example.com/c#x',
    'https://app.example.com/a/../c',
    'https://app.example.com/a/%2e%2e/c',
    'https://APP.example.com/c',
    'https://app.example.com:443/c',
    'https://app.example.com\\@evil.example.com/c',
    'https://ａpp.example.com/c',
  ])('%s is no client id', (id) => {
    expect(documentUrl(id)).toBeUndefined()
  })

  it.each([
    'https://127.0.0.1/c',
    'https://[::1]/c',
    'https://localhost/c',
    'https://10.0.0.1/c',
    'https://192.168.1.1/c',
    'https://169.254.169.254/latest',
    'https://metadata.google.internal/c',
    'https://kubernetes.default.svc/c',
    'https://0x7f.1/c',
  ])('RFC 9700 §4.15: %s is not called (SSRF)', async (url) => {
    await using outbound = createOutbound()
    const fetch = createDocumentFetch(outbound, systemClock, new AbortController().signal)
    await expect(fetch(new URL(url))).rejects.toMatchObject({ code: 'backend_blocked' })
  })

  describe('of a slow or talkative server', () => {
    /** Where a name would lead: everything else about the request is as it is. */
    async function fetchFrom(stack: AsyncDisposableStack, listener: RequestListener, clock: Clock = systemClock) {
      const http = createServer(listener).listen(0, '127.0.0.1')
      await once(http, 'listening')
      stack.defer(() => void http.closeAllConnections())
      stack.defer(() => void http.close())
      const outbound = createOutbound()
      stack.defer(() => outbound.close())
      const { port } = http.address() as AddressInfo
      const near = { ...outbound, target: () => outbound.target({ url: `http://127.0.0.1:${port}` }) } as Outbound
      return createDocumentFetch(near, clock, new AbortController().signal)
    }

    it('§6: a document that does not end is not read to its end', async () => {
      await using stack = new AsyncDisposableStack()
      let written = 0
      const fetch = await fetchFrom(stack, (_, response) => {
        response.writeHead(200, { 'content-type': 'application/json' })
        const more = () => {
          written += 4_096
          if (!response.destroyed && written < 64 << 20) response.write(' '.repeat(4_096), () => setImmediate(more))
        }
        more()
      })
      await expect(fetch(new URL(ID))).rejects.toThrow()
      expect(written).toBeLessThan(8 << 20)
    })

    it('§6: a document that never comes is given up', async () => {
      await using stack = new AsyncDisposableStack()
      const clock = new TestClock()
      const fetch = await fetchFrom(stack, (_, response) => void response.writeHead(200).write('{'), clock)
      const fetched = fetch(new URL(ID)).catch((error: unknown) => error)
      let outcome: unknown
      void fetched.then((error) => {
        outcome = error
      })
      await vi.waitFor(
        async () => {
          await clock.advance(1_000)
          expect(outcome).toBeInstanceOf(Error)
        },
        { timeout: 60_000, interval: 20 },
      )
    })
  })
})
