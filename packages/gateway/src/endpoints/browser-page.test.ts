import { request } from 'node:http'
import { reject } from '@thv/mcp/wire-errors'
import type { Middleware } from '@thv/middleware/pipeline/middleware'
import { type Fixture, startFixture } from '@thv/testkit/mcp/fixture'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { startTestRunner, type TestRunner, type TestRunnerOptions } from '../../../../apps/proxyrunner/src/testing/test-runner.ts'

const BROWSER = 'text/html,application/xhtml+xml,application/xml;q=0.9,image/avif,*/*;q=0.8'

let fixture: Fixture
let runner: TestRunner | undefined

beforeEach(async () => {
  fixture = await startFixture()
})
afterEach(async () => {
  await runner?.[Symbol.asyncDispose]()
  await fixture.stop()
})

async function start(options: Partial<TestRunnerOptions> = {}): Promise<TestRunner> {
  runner = await startTestRunner({ backend: fixture.url, ...options })
  await runner.probed()
  return runner
}

interface Page {
  readonly status: number | undefined
  readonly type: string | undefined
  readonly headers: Readonly<Record<string, string | string[] | undefined>>
  readonly text: string
}

function ask(base: string, headers: Record<string, string>, { path = '/', method = 'GET' } = {}): Promise<Page> {
  const { hostname, port } = new URL(base)
  return new Promise((resolve, fail) => {
    const sent = request({ hostname, port, path, method, headers }, (response) => {
      const chunks: Buffer[] = []
      response.on('data', (chunk: Buffer) => chunks.push(chunk))
      response.on('end', () => {
        const { statusCode: status, headers } = response
        resolve({ status, type: headers['content-type'], headers, text: Buffer.concat(chunks).toString('utf8') })
      })
    })
    sent.on('error', fail).end()
  })
}

describe('the page for browsers', () => {
  it('says at GET / what answers here and how to connect', async () => {
    const { base } = await start()
    const { status, type, text, headers } = await ask(base, { accept: BROWSER })
    expect([status, type]).toEqual([200, 'text/html; charset=utf-8'])
    expect(text).toContain('Model Context Protocol')
    expect(text).toContain(`<code>${base}/mcp</code>`)
    expect(text).toContain(`&#34;url&#34;: &#34;${base}/mcp&#34;`)
    expect(headers).toMatchObject({
      'content-security-policy': expect.stringContaining("default-src 'none'"),
      'x-content-type-options': 'nosniff',
      'cache-control': 'no-store',
    })
  })

  it('names nothing that the server offers, and asks no backend for it', async () => {
    const { base } = await start()
    const before = JSON.stringify(fixture.stats.http)
    const { text } = await ask(base, { accept: BROWSER })
    expect(text).not.toMatch(/echo|add_numbers|tools\/call/)
    expect(JSON.stringify(fixture.stats.http)).toBe(before)
  })

  it.each([
    ['a client of event streams', { accept: 'text/html, text/event-stream' }, {}],
    ['a client that takes anything', { accept: '*/*' }, {}],
    ['a client that says nothing', {}, {}],
    ['a client that takes no HTML', { accept: 'text/html;q=0, application/json' }, {}],
    ['another path', { accept: BROWSER }, { path: '/x' }],
    ['a POST', { accept: BROWSER }, { method: 'POST' }],
  ])('is not for %s', async (_, headers: Record<string, string>, target) => {
    const { base } = await start()
    const { text, type } = await ask(base, headers, target)
    expect(type).not.toContain('text/html')
    expect(text).not.toContain('<html')
  })

  it('is open where the MCP endpoint needs permission', async () => {
    const closed: Middleware = { name: 'closed', open: () => reject('invalid_request', { httpStatus: 401 }) }
    const resource = { resource: 'https://mcp.example.com', authorizationServers: ['https://idp.example.com'], scopes: [] }
    const { base } = await start({ middleware: [closed], server: { resource } })
    const page = await ask(base, { accept: BROWSER })
    expect(page.status).toBe(200)
    expect(page.text).toContain('must sign in')
    expect((await ask(base, { accept: BROWSER }, { path: '/mcp' })).status).toBe(401)
  })

  it('is rejected under a foreign Host, and repeats none that is not a loopback name', async () => {
    const { base } = await start({ server: { allowedHosts: ['mcp.example.com'] } })
    expect((await ask(base, { accept: BROWSER, host: 'evil.example.com' })).status).toBe(403)
    const { status, text } = await ask(base, { accept: BROWSER, host: 'mcp.example.com' })
    expect(status).toBe(200)
    expect(text).toContain('the address of this page with <code>/mcp</code> at its end')
    expect(text).not.toContain('mcp.example.com')
  })

  it('escapes the name of the server', async () => {
    const { base } = await start({ server: { name: '<b>"&' } })
    const { text } = await ask(base, { accept: BROWSER })
    expect(text).toContain('MCP server &#60;b&#62;&#34;&#38;')
    expect(text).not.toContain('<b>')
  })

  it('answers HEAD without a body, and names /sse where that is served', async () => {
    const { base } = await start({ transport: 'sse', server: { mode: 'sse' } })
    expect(await ask(base, { accept: BROWSER }, { method: 'HEAD' })).toMatchObject({ status: 200, text: '' })
    const { text } = await ask(base, { accept: BROWSER })
    expect(text).toContain(`<code>${base}/sse</code>`)
    expect(text).not.toContain('/mcp<')
  })
})
