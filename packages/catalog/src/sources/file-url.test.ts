import { gzipSync } from 'node:zlib'
import { createOutbound } from '@thv/http/outbound/outbound'
import { type BackendHandler, startBackend } from '@thv/http/testing/backend'
import { afterAll, describe, expect, it } from 'vitest'
import type { SourceConfig } from './fetch/source-config.ts'
import { createFileHandler } from './file/file-handler.ts'
import { documentText, failure, namesOf, testContext } from './testing/fetch-context.ts'

const outbound = createOutbound()
const handler = createFileHandler(outbound)
afterAll(() => outbound.close())

function source(url: string, timeout?: string): SourceConfig {
  return { name: 'url', file: { url, ...(timeout === undefined ? {} : { timeout }) }, intervalMs: 60_000 }
}

/** Result of a server that treats its first request like this. */
async function failureOf(treat: BackendHandler, limits: Parameters<typeof testContext>[0] = {}, timeout?: string): Promise<string> {
  await using backend = await startBackend(treat)
  const message = await failure(handler.fetchRegistry(source(`${backend.url}/registry.json?token=hunter2`, timeout), testContext(limits)))
  expect(message).not.toContain('hunter2')
  return message.replaceAll(backend.url, 'http://backend')
}

describe('a file at an address', () => {
  it('is asked for again only if it changed', async () => {
    let etag = '"one"'
    await using backend = await startBackend((request, response) => {
      if (request.headers['if-none-match'] === etag) return void response.writeHead(304, { etag }).end()
      response.writeHead(200, { etag }).end(`[${documentText(etag === '"one"' ? 'a' : 'b')}]`)
    })
    const config = source(`${backend.url}/registry.json`)
    const first = await handler.fetchRegistry(config, testContext())
    expect(namesOf(first)).toEqual(['io.example/a@1.0.0'])
    const { hash, state } = first
    expect(await handler.fetchRegistry(config, testContext({ state }))).toEqual({ kind: 'unchanged', hash, state })
    etag = '"two"'
    expect(namesOf(await handler.fetchRegistry(config, testContext({ state })))).toEqual(['io.example/b@1.0.0'])
    // Another filter has another use for the same bytes.
    etag = '"one"'
    const filtered = { ...config, filter: { names: { include: ['x'] } } }
    expect(await handler.fetchRegistry(filtered, testContext({ state }))).toMatchObject({ kind: 'full' })
    expect(backend.requests.at(-1)?.headers['if-none-match']).toBeUndefined()
  })

  it('goes by its date when it has no tag, and the date tells enough', async () => {
    const seen: (string | undefined)[] = []
    const modified = new Date(Date.now() - 3_600_000).toUTCString()
    await using backend = await startBackend((request, response) => {
      seen.push(request.headers['if-modified-since'])
      response.writeHead(200, { 'last-modified': request.url === '/fresh' ? new Date().toUTCString() : modified }).end('[]')
    })
    for (const path of ['/old', '/fresh']) {
      const { state } = await handler.fetchRegistry(source(`${backend.url}${path}`), testContext())
      expect(await handler.fetchRegistry(source(`${backend.url}${path}`), testContext({ state }))).toMatchObject({ kind: 'unchanged' })
    }
    expect(seen).toEqual([undefined, modified, undefined, undefined])
  })

  it('may be packed', async () => {
    await using backend = await startBackend((request, response) => {
      expect(request.headers['accept-encoding']).toBe('gzip')
      response.writeHead(200, { 'content-encoding': 'gzip' }).end(gzipSync(`[${documentText('a')}]`))
    })
    expect(namesOf(await handler.fetchRegistry(source(backend.url), testContext()))).toEqual(['io.example/a@1.0.0'])
  })

  it('may be behind a few redirects', async () => {
    await using other = await startBackend((_request, response) => void response.end(`[${documentText('a')}]`))
    await using backend = await startBackend((request, response) => {
      const hop = Number(request.url.slice(1))
      response.writeHead(302, { location: hop < 4 ? `/${hop + 1}` : `${other.url}/end` }).end()
    })
    expect(namesOf(await handler.fetchRegistry(source(`${backend.url}/0`), testContext()))).toEqual(['io.example/a@1.0.0'])
    expect(other.requests).toHaveLength(1)
  })

  it('is not fetched from private addresses unless that is allowed', async () => {
    await using backend = await startBackend((_request, response) => void response.end('[]'))
    const message = await failure(handler.fetchRegistry(source(backend.url), testContext({ allowPrivateAddresses: false })))
    expect(message).toContain('source_blocked')
    expect(message).toContain('127.0.0.1 is a loopback address (allowPrivateAddresses is off)')
    expect(backend.connections).toBe(0)
  })
})

describe('a hostile server', () => {
  const redirectTo = (location: string): BackendHandler => {
    return (_request, response) => void response.writeHead(302, { location }).end()
  }

  it.each([
    ['file:///etc/passwd', 'source_blocked: http://backend/registry.json redirects to the scheme file, which is not allowed'],
    ['gopher://example.com/', 'source_blocked: http://backend/registry.json redirects to the scheme gopher'],
    ['http://169.254.169.254/latest/meta-data/', 'source_blocked: http://backend/registry.json leads to what may not be fetched'],
    ['http://[fd00:ec2::254]/latest/', 'source_blocked: http://backend/registry.json leads to what may not be fetched'],
    ['http://metadata.google.internal/', 'source_blocked: http://backend/registry.json leads to what may not be fetched'],
    ['http://0xA9FEA9FE/', 'source_blocked: http://backend/registry.json leads to what may not be fetched'],
    ['http://user:pass@example.com/', 'source_blocked: http://backend/registry.json redirects to an address with a user name'],
    ['http://', 'source_failed: http://backend/registry.json redirects to what is no URL'],
    ['/registry.json', 'source_failed: http://backend/registry.json redirects more than 5 times'],
  ])('cannot redirect to %s', async (location, expected) => {
    expect(await failureOf(redirectTo(location))).toContain(expected)
  })

  it('cannot send without end', async () => {
    const chunk = Buffer.alloc(64 * 1024, 0x20)
    const endless: BackendHandler = (_request, response) => {
      const more = (): void => {
        if (response.destroyed) return
        if (response.write(chunk)) setImmediate(more)
        else response.once('drain', more)
      }
      more()
    }
    expect(await failureOf(endless, { limits: { maxBytes: 1_000_000 } })).toBe(
      'source_limit: http://backend answered with more than 1000000 bytes',
    )
  })

  it('cannot announce too much', async () => {
    const huge: BackendHandler = (_request, response) => void response.writeHead(200, { 'content-length': '10000000000' }).flushHeaders()
    expect(await failureOf(huge)).toContain('source_limit: http://backend answered with more than')
  })

  it('cannot send a bomb', async () => {
    const bomb = gzipSync(Buffer.alloc(20_000_000, 0x20))
    const send: BackendHandler = (_request, response) => void response.writeHead(200, { 'content-encoding': 'gzip' }).end(bomb)
    expect(await failureOf(send, { limits: { maxBytes: 1_000_000 } })).toBe(
      'source_limit: http://backend/registry.json: the answer unpacks to more than 1000000 bytes',
    )
  })

  it('cannot drip', async () => {
    const drip: BackendHandler = (_request, response) => {
      response.writeHead(200)
      const timer = setInterval(() => response.write(' '), 20)
      response.on('close', () => clearInterval(timer))
    }
    expect(await failureOf(drip, {}, '200ms')).toBe('source_failed: http://backend/registry.json did not answer completely within 200ms')
  })

  it('cannot hang', async () => {
    expect(await failureOf(() => {}, {}, '100ms')).toContain('did not answer completely within 100ms')
    expect(await failureOf(() => {}, { limits: { timeoutMs: 100 } })).toMatch(/^source_limit: .*the source was not read within 100ms/)
  })

  it.each<[string, BackendHandler, string]>([
    ['a page to sign in', (_, response) => void response.end('<html>'), 'the document is not JSON: it needs a value (byte 0)'],
    ['nothing', (_, response) => void response.end(), 'the document is empty'],
    ['an error', (_, response) => void response.writeHead(500).end('no'), 'HTTP 500 for http://backend/registry.json'],
    ['"not modified" unasked', (_, response) => void response.writeHead(304).end(), 'HTTP 304 for http://backend/registry.json'],
    ['no gzip', (_, response) => void response.writeHead(200, { 'content-encoding': 'gzip' }).end('[]'), 'the answer is not valid gzip'],
    [
      'an encoding',
      (_, response) => void response.writeHead(200, { 'content-encoding': 'br' }).end('[]'),
      'an encoding that was not asked for',
    ],
    ['a broken connection', (_, response) => void response.destroy(), 'http://backend broke the connection'],
    [
      'half',
      (_, response) => void response.writeHead(200, { 'content-length': '10' }).end('[', () => response.destroy()),
      'http://backend',
    ],
    ['nesting', (_, response) => void response.end('['.repeat(10_000) + ']'.repeat(10_000)), 'none of the 1 entries can be used'],
  ])('cannot pass off %s as a registry', async (_name, treat, expected) => {
    const message = await failureOf(treat)
    expect(message).toMatch(/^source_failed: /)
    expect(message).toContain(expected)
  })

  it('is left at once when the attempt is given up', async () => {
    const stop = new AbortController()
    await using backend = await startBackend(() => stop.abort())
    const fetching = handler.fetchRegistry(source(backend.url), testContext({ signal: stop.signal }))
    await expect(fetching).rejects.toMatchObject({ code: 'aborted' })
  })
})
