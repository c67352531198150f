import { once } from 'node:events'
import { createServer } from 'node:net'
import { ThvError } from '@thv/kernel/errors'
import { describe, expect, it } from 'vitest'
import type { Exchange } from '../server/exchange.ts'
import { readBody } from '../server/read-body.ts'
import { sendProblem } from '../server/respond.ts'
import { type Backend, type BackendHandler, startBackend } from '../testing/backend.ts'
import { eventually, get, type LoopbackServer, pause, post, rawClient, rawExchange, startServer } from '../testing/loopback.ts'
import { type ForwardOptions, type ForwardResult, forward, forwardedHeaders, returnedHeaders } from './forward.ts'
import { createOutbound } from './outbound.ts'

interface Proxy extends AsyncDisposable {
  readonly backend: Backend
  readonly front: LoopbackServer
  readonly results: (ForwardResult | ThvError)[]
  readonly exchanges: Exchange[]
}

type Extra = Omit<ForwardOptions, 'target' | 'body'> | ((exchange: Exchange) => Omit<ForwardOptions, 'target' | 'body'>)

async function startProxy(handler: BackendHandler, extra: Extra = {}): Promise<Proxy> {
  const backend = await startBackend(handler)
  const outbound = createOutbound()
  const target = outbound.target({ url: backend.url })
  const results: (ForwardResult | ThvError)[] = []
  const exchanges: Exchange[] = []
  const front = await startServer(async (exchange) => {
    exchanges.push(exchange)
    const body = await readBody(exchange, 1 << 20)
    try {
      results.push(await forward(exchange, { target, body, ...(typeof extra === 'function' ? extra(exchange) : extra) }))
    } catch (error) {
      if (!(error instanceof ThvError)) throw error
      results.push(error)
      if (!exchange.response.headersSent) sendProblem(exchange, 502)
    }
  })
  return {
    backend,
    front,
    results,
    exchanges,
    async [Symbol.asyncDispose]() {
      await front[Symbol.asyncDispose]()
      await outbound.close()
      await backend[Symbol.asyncDispose]()
    },
  }
}

const close = 'Connection: close'

describe('forward', () => {
  it('passes request and answer on', async () => {
    await using proxy = await startProxy((seen, response) => {
      response.writeHead(202, { 'content-type': 'application/json', 'content-length': '4', 'set-cookie': ['a=1', 'b=2'] })
      response.end(seen.body)
    })
    const answer = await rawExchange(proxy.front.port, post('/mcp?x=1', 'ping', ['X-A: 1', 'Authorization: Bearer t', close]))
    expect(answer).toMatch(/^HTTP\/1.1 202 Accepted\r\n/)
    expect(answer).toMatch(/set-cookie: a=1\r\nset-cookie: b=2\r\n/)
    expect(answer).toMatch(/content-length: 4\r\n[\s\S]*\r\n\r\nping$/)
    expect(proxy.backend.requests).toMatchObject([
      {
        method: 'POST',
        url: '/mcp?x=1',
        body: 'ping',
        headers: { 'x-a': '1', authorization: 'Bearer t', host: `127.0.0.1:${proxy.backend.port}` },
      },
    ])
    expect(proxy.results).toEqual([{ status: 202, bytes: 4 }])
  })

  it('leaves out what belongs to the connection, and what the client must not claim', async () => {
    await using proxy = await startProxy((_seen, response) => {
      response.writeHead(200, { connection: 'x-hop', 'x-hop': '1', 'keep-alive': 'timeout=9', 'x-kept': '1' })
      response.end()
    })
    const answer = await rawExchange(
      proxy.front.port,
      get('/', [
        'Connection: close, X-Mine',
        'X-Mine: 1',
        'Keep-Alive: 1',
        'TE: trailers',
        'Upgrade: h2c',
        'Proxy-Authorization: Basic x',
        'Origin: http://evil.example',
        'Forwarded: for=1.2.3.4',
        'X-Forwarded-For: 1.2.3.4',
        'X-Forwarded-Host: evil',
        'X-Real-IP: 1.2.3.4',
        'X-Kept: 1',
      ]),
    )
    const [seen] = proxy.backend.requests
    expect(Object.keys(seen?.headers ?? {}).sort()).toEqual(['connection', 'host', 'x-kept'])
    expect(seen?.headers.connection).toBe('keep-alive')
    expect(answer).toContain('x-kept: 1')
    expect(answer).not.toMatch(/x-hop|timeout=9/i)
  })

  it('sets headers over those of the client, and takes headers away', async () => {
    await using proxy = await startProxy((_seen, response) => void response.end(), {
      set: { authorization: 'Bearer backend', 'mcp-session-id': undefined, 'x-new': ['1', '2'] },
      path: '/other?y',
    })
    await rawExchange(proxy.front.port, get('/', ['Authorization: Bearer client', 'Mcp-Session-Id: abc', close]))
    const [seen] = proxy.backend.requests
    expect(seen).toMatchObject({ url: '/other?y', headers: { authorization: 'Bearer backend', 'x-new': '1, 2' } })
    expect(seen?.headers).not.toHaveProperty('mcp-session-id')
  })

  it('lets the caller see the answer first, edit its headers, or refuse it', async () => {
    await using proxy = await startProxy((seen, response) => void response.writeHead(200, { 'mcp-session-id': 'theirs' }).end(seen.url), {
      onResponse(status, headers) {
        if (headers['mcp-session-id'] !== 'theirs' || status !== 200) throw new Error('unexpected')
        headers['mcp-session-id'] = 'ours'
      },
    })
    expect(await rawExchange(proxy.front.port, get('/', [close]))).toContain('mcp-session-id: ours')
    await using refusing = await startProxy((_seen, response) => void response.end('secret'), {
      onResponse() {
        throw new ThvError('invalid_request', 'not this one')
      },
    })
    const answer = await rawExchange(refusing.front.port, get('/', [close]))
    expect(answer).toContain('HTTP/1.1 502 ')
    expect(answer).not.toContain('secret')
  })

  it('passes a stream on as it comes', async () => {
    let say: (text: string) => void = () => {}
    await using proxy = await startProxy(
      (_seen, response) => {
        response.writeHead(200, { 'content-type': 'text/event-stream' }).flushHeaders()
        say = (text) => response.write(text)
      },
      { purpose: 'stream' },
    )
    using client = await rawClient(proxy.front.port)
    client.write(get('/'))
    expect(await client.until('\r\n\r\n')).toContain('content-type: text/event-stream')
    for (const text of ['data: 1\n\n', 'data: 2\n\n']) {
      say(text)
      await client.until(text)
    }
  })

  it('answers HEAD and 304 without a body', async () => {
    await using proxy = await startProxy(
      (seen, response) => void response.writeHead(seen.method === 'HEAD' ? 200 : 304, { 'x-a': '1' }).end(),
    )
    expect(await rawExchange(proxy.front.port, 'HEAD / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n')).toMatch(/200 OK[\s\S]*\r\n\r\n$/)
    expect(await rawExchange(proxy.front.port, get('/', [close]))).toMatch(/304 Not Modified[\s\S]*\r\n\r\n$/)
  })

  it('lets the caller answer when no answer came', async () => {
    await using proxy = await startProxy((_seen, response) => void response.destroy())
    expect(await rawExchange(proxy.front.port, get('/', [close]))).toMatch(/^HTTP\/1.1 502 /)
    expect(proxy.results).toMatchObject([{ code: 'backend_reset', sent: true, answered: false }])
  })

  it('cuts the connection of the client when an answer breaks off, so that it does not look whole', async () => {
    await using proxy = await startProxy(async (_seen, response) => {
      response.writeHead(200)
      response.write('half')
      await pause(30)
      response.destroy()
    })
    const answer = await rawExchange(proxy.front.port, get('/'))
    expect(answer).toContain('half')
    expect(answer.endsWith('0\r\n\r\n')).toBe(false)
    expect(proxy.results).toMatchObject([{ code: 'backend_reset', answered: true }])
    expect(proxy.front.errors).toEqual([])
  })

  it('does not pass on a header that is none', async () => {
    const backend = createServer((socket) =>
      socket.on('error', () => {}).once('data', () => socket.end('HTTP/1.1 999 \x01\r\nX: a\x01b\r\nContent-Length: 0\r\n\r\n', 'latin1')),
    )
    await new Promise<void>((resolve) => backend.listen(0, '127.0.0.1', resolve))
    await using outbound = createOutbound()
    const target = outbound.target({ url: `http://127.0.0.1:${(backend.address() as { port: number }).port}` })
    const failures: unknown[] = []
    await using front = await startServer(async (exchange) => {
      await forward(exchange, { target }).catch((error: unknown) => failures.push(error))
      sendProblem(exchange, 502)
    })
    expect(await rawExchange(front.port, get('/', [close]))).toMatch(/^HTTP\/1.1 502 /)
    expect(failures).toMatchObject([{ code: 'backend_protocol' }])
    backend.close()
  })
})

describe('slow and lost clients', () => {
  const flood: BackendHandler = async (_seen, response) => {
    response.writeHead(200)
    const part = Buffer.alloc(64 * 1024)
    const gone = once(response, 'close')
    for (let i = 0; i < 500 && !response.destroyed; i++) if (!response.write(part)) await Promise.race([once(response, 'drain'), gone])
    response.end()
  }

  it('slow the backend down, and lose nothing', async () => {
    await using proxy = await startProxy(flood)
    using client = await rawClient(proxy.front.port, { paused: true })
    client.write(get('/', [close]))
    await eventually(() => proxy.exchanges.length === 1)
    await pause(200)
    expect(proxy.exchanges[0]?.response.writableLength).toBeLessThan(2 << 20)
    expect(proxy.results).toHaveLength(0)
    let received = 0
    client.socket.on('data', (chunk: Buffer) => (received += chunk.length))
    await client.untilClosed()
    expect(received).toBeGreaterThan(500 * 64 * 1024)
    expect(proxy.results).toEqual([{ status: 200, bytes: 500 * 64 * 1024 }])
  })

  it('cancel the call when the caller links them', async () => {
    await using proxy = await startProxy(
      (_seen, response) => void response.writeHead(200).flushHeaders(),
      (exchange) => ({ signal: exchange }),
    )
    using client = await rawClient(proxy.front.port)
    client.write(get('/'))
    await client.until('200 OK')
    client.socket.destroy()
    await eventually(() => proxy.results.length === 1)
    expect(proxy.results).toMatchObject([{ code: 'aborted' }])
    await eventually(() => proxy.backend.sockets.size === 0)
    expect(proxy.front.errors).toEqual([])
  })

  it('do not cancel it otherwise: the answer is read to its end', async () => {
    let finish = () => {}
    await using proxy = await startProxy(async (_seen, response) => {
      response.writeHead(200).write('begun')
      await new Promise<void>((resolve) => {
        finish = resolve
      })
      response.end('rest')
    })
    using client = await rawClient(proxy.front.port)
    client.write(get('/'))
    await client.until('begun')
    client.socket.destroy()
    await eventually(() => proxy.exchanges[0]?.aborted === true)
    finish()
    await eventually(() => proxy.results.length === 1)
    expect(proxy.results).toEqual([{ status: 200, bytes: 9 }])
  })

  it('do not leave a paused call behind', async () => {
    await using proxy = await startProxy(flood)
    using client = await rawClient(proxy.front.port, { paused: true })
    client.write(get('/'))
    await eventually(() => (proxy.exchanges[0]?.response.writableLength ?? 0) > 0)
    await pause(50)
    client.socket.resetAndDestroy()
    await eventually(() => proxy.results.length === 1)
    expect(proxy.results).toEqual([{ status: 200, bytes: 500 * 64 * 1024 }])
  })
})

describe('headers', () => {
  it('keep the first of what must be one, as the checks saw it', async () => {
    await using proxy = await startProxy((_seen, response) => void response.end())
    await rawExchange(proxy.front.port, get('/', ['Authorization: Bearer good', 'Authorization: Bearer evil', close]))
    expect(proxy.backend.requests[0]?.rawHeaders.join(' ')).not.toContain('evil')
  })

  it('are filtered by pure functions', () => {
    expect(forwardedHeaders({ host: 'a', 'x-b': ['1', '2'], constructor: 'c', connection: 'x-b' }, { d: '3' })).toEqual([
      'constructor',
      'c',
      'd',
      '3',
    ])
    // A client cannot remove what the proxy sets by naming it in Connection.
    expect(
      forwardedHeaders({ connection: 'authorization, x-key', authorization: 'its own' }, { authorization: 'ours', 'x-key': 'k' }),
    ).toEqual(['authorization', 'ours', 'x-key', 'k'])
    expect(returnedHeaders({ 'transfer-encoding': 'chunked', 'x-b': ['1', '2'], c: undefined })).toEqual(['x-b', '1', 'x-b', '2'])
  })
})
