import { once } from 'node:events'
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { createServer } from 'node:https'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { getCACertificates, setDefaultCACertificates } from 'node:tls'
import { StreamableHTTPClientTransport } from '@modelcontextprotocol/client'
import { type BackendHandler, startBackend } from '@thv/http/testing/backend'
import { createCertificate } from '@thv/http/tls/certificate'
import { connectSdk } from '@thv/testkit/mcp/testing/sdk-client'
import { afterAll, describe, expect, it } from 'vitest'
import { startTestVmcp, type TestVmcp } from './testing/test-vmcp.ts'

const folder = mkdtempSync(join(tmpdir(), 'vmcp-trust-'))
afterAll(() => rmSync(folder, { recursive: true }))

/** A legacy server without sessions, with one tool. */
const handler: BackendHandler = ({ body }, response) => {
  if (body === '') return void response.writeHead(405).end() // GET: it has no stream
  const { id, method } = JSON.parse(body) as { id?: number; method: string }
  if (id === undefined) return void response.writeHead(202).end()
  const result = {
    initialize: { protocolVersion: '2025-11-25', capabilities: { tools: {} }, serverInfo: { name: 's', version: '1' } },
    'tools/list': { tools: [{ name: 'hello', inputSchema: { type: 'object' } }] },
    'tools/call': { content: [{ type: 'text', text: 'hi' }] },
  }[method]
  const answer = result === undefined ? { error: { code: -32601, message: 'no' } } : { result }
  response.writeHead(200, { 'content-type': 'application/json' }).end(JSON.stringify({ jsonrpc: '2.0', id, ...answer }))
}

function makeCa(name: string) {
  const ca = createCertificate({ commonName: name, ca: true })
  const path = join(folder, `${name}.crt`)
  writeFileSync(path, ca.certPem)
  return { path, server: createCertificate({ commonName: 'server', hosts: ['127.0.0.1'], issuer: ca }) }
}

function entry(name: string, url: string, caBundlePath?: string) {
  return { name, url: `${url}/mcp`, type: 'entry', ...(caBundlePath !== undefined && { caBundlePath }) }
}

function start(backends: readonly object[], more: Readonly<Record<string, unknown>> = {}): Promise<TestVmcp> {
  return startTestVmcp({ backends: {}, config: { backends, aggregation: { conflictResolution: 'prefix' }, ...more } })
}

const tools = ({ offer }: TestVmcp) => [...offer.view.now.tools.keys()]

describe('trust in backends', () => {
  it('[004-110] the CA bundle of one backend is not trusted for another', async () => {
    const [one, two] = [makeCa('one'), makeCa('two')]
    await using a = await startBackend(handler, one.server)
    await using b = await startBackend(handler, two.server)
    await using vmcp = await start([
      entry('a', a.url, one.path),
      entry('b', b.url, one.path),
      entry('c', b.url, two.path),
      entry('d', a.url),
    ])
    expect(tools(vmcp)).toEqual(['a_hello', 'c_hello'])
    const health = vmcp.offer.members.map(({ name, health: { status } }) => `${name} ${status === 'healthy'}`)
    expect(health).toEqual(['a true', 'b false', 'c true', 'd false'])
  })

  it('[004-108] [004-109] trusts the CAs of the system, also beside a CA bundle', async () => {
    const [system, own] = [makeCa('system'), makeCa('own')]
    const before = getCACertificates('default')
    setDefaultCACertificates([...before, readFileSync(system.path, 'utf8')])
    try {
      await using known = await startBackend(handler, system.server)
      await using foreign = await startBackend(handler, own.server)
      await using vmcp = await start([
        entry('bare', known.url),
        entry('beside', known.url, own.path),
        entry('own', foreign.url, own.path),
        entry('unknown', foreign.url),
      ])
      expect(tools(vmcp)).toEqual(['bare_hello', 'beside_hello', 'own_hello'])
    } finally {
      setDefaultCACertificates(before)
    }
  })

  it('[004-117] after a failed handshake the next call opens a new connection and succeeds', async () => {
    const [trusted, other] = [makeCa('trusted'), makeCa('other')]
    await using backend = await startWithCertificate(trusted.server)
    await using vmcp = await start([entry('a', backend.url, trusted.path)])
    await using sdk = await connectSdk(new StreamableHTTPClientTransport(new URL(vmcp.url)), 'legacy')
    expect(await sdk.text('a_hello')).toBe('hi')
    backend.use(other.server)
    await expect(sdk.text('a_hello')).rejects.toThrow()
    backend.use(trusted.server)
    expect(await sdk.text('a_hello')).toBe('hi')
  })

  it.each([
    ['a link-local address', 'http://169.254.169.254/mcp', /link-local/],
    ['a metadata name', 'http://metadata.google.internal/mcp', /metadata/],
    ['a loopback address', 'http://127.0.0.1:1/mcp', /loopback/],
  ])('rejects %s by its field', async (_, url, expected) => {
    const started = start([{ name: 'a', url, type: 'entry' }], { remotePolicy: {} })
    await expect(started).rejects.toThrow(expected)
    await expect(started).rejects.toThrow('backends.a.url')
  })

  it.each(['169.254.169.254', '127.0.0.1', '0.0.0.0'])('[004-055] does not call a name that resolves to %s', async (address) => {
    await using backend = await startBackend(handler)
    const url = `http://tools.example:${backend.port}/mcp`
    const resolve = async () => [{ address, family: 4 as const }]
    const backends = [{ name: 'a', url, type: 'entry' }]
    await using vmcp = await startTestVmcp({ backends: {}, config: { backends, remotePolicy: {} }, resolve })
    expect(tools(vmcp)).toEqual([])
    expect(backend.connections).toBe(0)
    expect(vmcp.logged.join()).toContain('tools.example')
  })

  it('rejects a CA bundle that cannot be read, by its field', async () => {
    const empty = join(folder, 'empty.crt')
    writeFileSync(empty, 'no certificate')
    for (const path of ['/none/ca.crt', empty]) {
      const refused = expect(start([entry('a', 'https://127.0.0.1:1', path)])).rejects
      await refused.toMatchObject({ code: 'vmcp_config_invalid', message: expect.stringContaining('backends.a.caBundlePath') })
    }
  })
})

/** A server whose certificate can be exchanged while it listens. */
async function startWithCertificate(first: { certPem: string; keyPem: string }) {
  const server = createServer({ cert: first.certPem, key: first.keyPem }, async (incoming, response) => {
    let body = ''
    for await (const chunk of incoming) body += String(chunk)
    await handler({ method: 'POST', url: '', headers: incoming.headers, rawHeaders: [], body }, response)
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  return {
    url: `https://127.0.0.1:${(server.address() as AddressInfo).port}`,
    /** For connections from now on; those before are cut. */
    use({ certPem, keyPem }: { certPem: string; keyPem: string }) {
      server.setSecureContext({ cert: certPem, key: keyPem })
      server.closeAllConnections()
    },
    async [Symbol.asyncDispose]() {
      server.closeAllConnections()
      await new Promise((resolve) => server.close(resolve))
    },
  }
}
