import { inspect } from 'node:util'
import { ThvError } from '@thv/kernel/errors'
import { runInScope } from '@thv/kernel/program-scope'
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { isHttpError, RequestError } from '../http-errors.ts'
import { eventually, get, pause, post, rawClient, rawExchange, startServer } from '../testing/loopback.ts'
import type { Exchange } from './exchange.ts'
import { sendJson, sendText } from './respond.ts'
import { createHttpServer } from './server.ts'

const hello = (exchange: Exchange) => sendText(exchange, `hello ${exchange.path}`)
const close = ['Connection: close']
const never = () => new Promise<void>(() => {})

describe('requests', () => {
  it('gives method, path, query, headers and address to the handler', async () => {
    await using loopback = await startServer((exchange) =>
      sendJson(exchange, [
        exchange.method,
        exchange.target,
        exchange.path,
        exchange.query,
        exchange.headers['x-a'],
        exchange.remoteAddress,
      ]),
    )
    const answer = await rawExchange(loopback.port, get('/a/b?c=d?e', ['X-A: 1', ...close]))
    expect(answer).toContain('HTTP/1.1 200 OK')
    expect(answer).toContain('["GET","/a/b?c=d?e","/a/b","c=d?e","1","127.0.0.1"]')
    await eventually(() => loopback.server.stats.connections === 0)
    expect(loopback.server.stats).toEqual({ inFlight: 0, connections: 0, requests: 1, dropped: 0, malformed: 0, forbidden: 0 })
  })

  it('shows no credential of an exchange that is printed', async () => {
    const printed: string[] = []
    await using loopback = await startServer((exchange) => {
      printed.push(inspect(exchange, { depth: 9 }), JSON.stringify(exchange))
      hello(exchange)
    })
    await rawExchange(loopback.port, get('/a?token=hunter2', ['Authorization: Bearer hunter2', ...close]))
    expect(printed).toEqual(['Exchange(GET /a)', '{"method":"GET","path":"/a"}'])
  })

  it('answers pipelined requests in their order', async () => {
    const gates = new Map<string, () => void>()
    await using loopback = await startServer(async (exchange) => {
      await new Promise<void>((resolve) => gates.set(exchange.path, resolve))
      hello(exchange)
    })
    using client = await rawClient(loopback.port)
    client.write(get('/1') + get('/2') + get('/3', close))
    await eventually(() => gates.size === 3)
    expect(loopback.server.stats.inFlight).toBe(3)
    for (const path of ['/3', '/2', '/1']) gates.get(path)?.()
    const answer = await client.untilClosed()
    expect([...answer.matchAll(/hello (\/\d)/g)].map((match) => match[1])).toEqual(['/1', '/2', '/3'])
  })

  it('refuses more pipelined requests than it allows', async () => {
    const open: Exchange[] = []
    await using loopback = await startServer((exchange) => void open.push(exchange), { limits: { maxPipelined: 2 } })
    using client = await rawClient(loopback.port)
    client.write(get('/1') + get('/2') + get('/3'))
    await eventually(() => loopback.server.stats.requests === 3)
    expect(open).toHaveLength(2)
    for (const exchange of open) hello(exchange)
    expect(await client.untilClosed()).toMatch(/hello \/1[\s\S]*hello \/2[\s\S]*503 Service Unavailable[\s\S]*Connection: close/)
  })

  it('does not ask for an unread body', async () => {
    await using loopback = await startServer(async (exchange) => hello(exchange))
    const answer = await rawExchange(
      loopback.port,
      'POST /x HTTP/1.1\r\nHost: a\r\nExpect: 100-continue\r\nContent-Length: 5\r\nConnection: close\r\n\r\n',
    )
    expect(answer).not.toContain('100 Continue')
    expect(answer).toContain('hello /x')
  })

  it('takes the absolute form only when it names the same host', async () => {
    await using loopback = await startServer(hello)
    const ask = (target: string) => rawExchange(loopback.port, `GET ${target} HTTP/1.1\r\nHost: a.example:80\r\nConnection: close\r\n\r\n`)
    expect(await ask('http://A.example:80/x?y')).toContain('hello /x')
    expect(await ask('http://a.example:80')).toContain('hello /')
    expect(await ask('http://evil.example/x')).toContain('HTTP/1.1 400 ')
    expect(await ask('*')).toContain('HTTP/1.1 400 ')
  })
})

describe('hostile input', () => {
  it.each([
    ['garbage', 'what is this\r\n\r\n', 400],
    ['no Host', 'GET / HTTP/1.1\r\nConnection: close\r\n\r\n', 400],
    ['two Hosts', 'GET / HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n', 400],
    ['two lengths', 'POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\nxx', 400],
    ['length and chunks', 'POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n', 400],
    ['a bare line feed in a header', 'GET / HTTP/1.1\r\nHost: a\r\nX: b\nY: c\r\n\r\n', 400],
    ['a space before the colon', 'GET / HTTP/1.1\r\nHost : a\r\n\r\n', 400],
    ['HTTP/2', 'PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n', 400],
    ['TLS', '\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03', 400],
    ['a huge header', `GET / HTTP/1.1\r\nHost: a\r\nX: ${'x'.repeat(3_000)}\r\n\r\n`, 431],
    ['many headers', `GET / HTTP/1.1\r\nHost: a\r\n${'X: y\r\n'.repeat(30)}\r\n`, 431],
    ['an unknown expectation', 'GET / HTTP/1.1\r\nHost: a\r\nExpect: wonders\r\nConnection: close\r\n\r\n', 417],
  ])('answers %s with a 4xx and lives on', async (_name, text, status) => {
    await using loopback = await startServer(hello, { limits: { maxHeaderBytes: 2_048, maxHeaders: 20 } })
    expect(await rawExchange(loopback.port, text)).toMatch(new RegExp(`^HTTP/1.1 ${status} `))
    expect(await rawExchange(loopback.port, get('/', close))).toContain('hello /')
    expect(loopback.errors).toEqual([])
  })

  it('never answers 5xx and never reports an error, whatever bytes come', async () => {
    await using loopback = await startServer(hello)
    const bytes = fc.oneof(
      fc.uint8Array({ minLength: 1, maxLength: 200 }),
      fc
        .array(
          fc.constantFrom(
            'GET ',
            'POST ',
            '/',
            ' HTTP/1.1',
            '\r\n',
            'Host: a',
            'Content-Length: ',
            '5',
            'Transfer-Encoding: chunked',
            ': ',
            '\0',
            '\n',
            ' ',
            'é',
            '%',
            '\r\n\r\n',
          ),
          { minLength: 1, maxLength: 12 },
        )
        .map((parts) => Buffer.from(parts.join(''))),
    )
    await fc.assert(
      fc.asyncProperty(bytes, async (input) => {
        using client = await rawClient(loopback.port)
        client.write(input)
        client.socket.end()
        expect(await client.untilClosed()).not.toMatch(/^HTTP\/1.1 5/m)
      }),
      { numRuns: 150 },
    )
    expect(loopback.errors).toEqual([])
    expect(await rawExchange(loopback.port, get('/', close))).toContain('hello /')
    await eventually(() => loopback.server.stats.inFlight === 0)
  })

  it('writes no second status into an answer that has begun', async () => {
    await using loopback = await startServer((exchange) => {
      exchange.response.writeHead(200)
      exchange.response.write('begun')
    })
    using client = await rawClient(loopback.port)
    client.write(get('/'))
    await client.until('begun')
    client.write('garbage\r\n\r\n')
    expect(await client.untilClosed()).not.toContain('400')
  })

  it('cuts off slow headers, and connections that say nothing', async () => {
    await using loopback = await startServer(hello, { limits: { headersTimeoutMs: 200 } })
    using silent = await rawClient(loopback.port)
    using slow = await rawClient(loopback.port)
    slow.write('GET / HTTP/1.1\r\nHo')
    expect(await slow.untilClosed()).toContain('HTTP/1.1 408 ')
    await silent.untilClosed()
    expect(loopback.server.stats.malformed).toBe(2)
  })

  it('turns connections away over its limit', async () => {
    await using loopback = await startServer(hello, { limits: { maxConnections: 2 } })
    using one = await rawClient(loopback.port)
    using two = await rawClient(loopback.port)
    await eventually(() => loopback.server.stats.connections === 2)
    using three = await rawClient(loopback.port)
    await three.untilClosed()
    await eventually(() => loopback.server.stats.dropped === 1)
    one.write(get('/', close))
    expect(await one.untilClosed()).toContain('hello')
    expect(two.ended).toBe(false)
  })
})

describe('handlers that fail', () => {
  it.each([
    [
      'throws',
      () => {
        throw new Error('secret detail')
      },
    ],
    ['rejects', () => Promise.reject(new Error('secret detail'))],
  ])('answers 500 without the cause when one %s', async (_name, handler) => {
    await using loopback = await startServer(handler)
    const answer = await rawExchange(loopback.port, get('/', close))
    expect(answer).toContain('HTTP/1.1 500 ')
    expect(answer).not.toContain('secret')
    expect(loopback.errors).toMatchObject([{ message: 'secret detail' }])
  })

  it('answers with the status of a request error, and reports nothing', async () => {
    await using loopback = await startServer(() => Promise.reject(new RequestError('request_body_too_large', 413, 'too much')))
    expect(await rawExchange(loopback.port, get('/', close))).toMatch(/^HTTP\/1.1 413 [\s\S]*\{"error":"too much"\}$/)
    expect(loopback.errors).toEqual([])
  })

  it('cuts an answer that has begun, so that it does not look complete', async () => {
    await using loopback = await startServer(async ({ response }) => {
      response.writeHead(200)
      response.write('half')
      await pause(20)
      throw new Error('broken')
    })
    const answer = await rawExchange(loopback.port, get('/'))
    expect(answer).toContain('half')
    expect(answer.endsWith('0\r\n\r\n')).toBe(false)
    expect(loopback.errors).toHaveLength(1)
  })

  it('survives an answer that is written twice', async () => {
    await using loopback = await startServer((exchange) => {
      hello(exchange)
      exchange.response.write('again')
    })
    expect(await rawExchange(loopback.port, get('/', close))).toContain('hello')
    await eventually(() => loopback.server.stats.inFlight === 0)
  })
})

describe('clients that go away', () => {
  it('aborts the signal of an exchange without a complete answer', async () => {
    const seen: Exchange[] = []
    await using loopback = await startServer((exchange) => void seen.push(exchange))
    using client = await rawClient(loopback.port)
    client.write(get('/'))
    await eventually(() => seen.length === 1)
    const signal = seen[0]?.signal
    expect(signal?.aborted).toBe(false)
    client.socket.destroy()
    await eventually(() => signal?.aborted === true)
    expect(signal?.reason).toMatchObject({ code: 'aborted' })
    expect(seen[0]?.closed).toBe(true)
    expect(loopback.server.stats.inFlight).toBe(0)
  })

  it('takes a half-closed connection for one that is gone', async () => {
    const seen: Exchange[] = []
    await using loopback = await startServer((exchange) => void seen.push(exchange))
    using client = await rawClient(loopback.port)
    client.write(get('/'))
    await eventually(() => seen.length === 1)
    client.socket.end()
    await eventually(() => seen[0]?.aborted === true)
    expect(loopback.server.stats.inFlight).toBe(0)
  })

  it('gives an aborted signal to late callers', async () => {
    const seen: Exchange[] = []
    await using loopback = await startServer((exchange) => void seen.push(exchange))
    using client = await rawClient(loopback.port)
    client.write(get('/'))
    await eventually(() => seen.length === 1)
    client.socket.destroy()
    await eventually(() => seen[0]?.closed === true)
    expect(seen[0]?.signal.aborted).toBe(true)
  })

  it('tells every pipelined exchange, not only the first', async () => {
    const seen: Exchange[] = []
    await using loopback = await startServer((exchange) => void seen.push(exchange))
    using client = await rawClient(loopback.port)
    client.write(get('/1') + get('/2') + get('/3'))
    await eventually(() => seen.length === 3)
    const signals = seen.map(({ signal }) => signal)
    client.socket.destroy()
    await eventually(() => signals.every(({ aborted }) => aborted))
    expect(loopback.server.stats.inFlight).toBe(0)
    expect(loopback.errors).toEqual([])
  })

  it('does not abort after a complete answer', async () => {
    const seen: Exchange[] = []
    await using loopback = await startServer((exchange) => {
      seen.push(exchange)
      hello(exchange)
    })
    await rawExchange(loopback.port, get('/', close))
    await eventually(() => seen[0]?.closed === true)
    expect(seen[0]?.aborted).toBe(false)
    expect(seen[0]?.signal.aborted).toBe(false)
  })

  it('does not report a handler that stops for that reason', async () => {
    const stopped: unknown[] = []
    await using loopback = await startServer(async ({ signal }) => {
      await new Promise((_resolve, reject) => signal.addEventListener('abort', () => reject(signal.reason))).catch((error) => {
        stopped.push(error)
        throw error
      })
    })
    using client = await rawClient(loopback.port)
    client.write(get('/'))
    await eventually(() => loopback.server.stats.inFlight === 1)
    client.socket.destroy()
    await eventually(() => stopped.length === 1)
    await pause(10)
    expect(loopback.errors).toEqual([])
  })

  it('tells the reason when the server itself cuts the connection', async () => {
    const reason = new ThvError('queue_full', 'no')
    const seen: AbortSignal[] = []
    await using loopback = await startServer((exchange) => {
      seen.push(exchange.signal)
      exchange.destroy(reason)
      sendText(exchange, 'too late')
    })
    expect(await rawExchange(loopback.port, get('/'))).toBe('')
    expect(seen[0]?.reason).toBe(reason)
    await eventually(() => loopback.server.stats.inFlight === 0)
  })
})

describe('idle and stalled connections', () => {
  it('closes a connection without requests', async () => {
    await using loopback = await startServer(hello, { limits: { keepAliveMs: 100, stallMs: 60_000 } })
    using client = await rawClient(loopback.port)
    client.write(get('/'))
    await client.until('hello')
    expect(await client.untilClosed()).toMatch(/hello \/$/)
  })

  it('leaves a silent stream open however long, and cuts a reader that takes nothing', async () => {
    const seen: Exchange[] = []
    await using loopback = await startServer(
      (exchange) => {
        exchange.response.writeHead(200)
        exchange.response.write('begun')
        seen.push(exchange)
      },
      { limits: { stallMs: 150 } },
    )
    using silent = await rawClient(loopback.port)
    silent.write(get('/silent'))
    await silent.until('begun')
    using stalled = await rawClient(loopback.port, { paused: true })
    stalled.write(get('/stalled'))
    await eventually(() => seen.length === 2)
    await pause(500)
    expect(seen.map(({ closed }) => closed)).toEqual([false, false])
    seen[1]?.response.write(Buffer.alloc(32 << 20))
    await eventually(() => seen[1]?.aborted === true)
    seen[0]?.response.end('still here')
    await silent.until('still here')
  })
})

describe('listen', () => {
  it('names an address that is not available', async () => {
    await using loopback = await startServer(hello)
    const second = createHttpServer({ handler: hello, onError: () => {} })
    const error = await second.listen({ host: '127.0.0.1', port: loopback.port }).catch((e: unknown) => e)
    expect(isHttpError(error, 'listen_failed')).toBe(true)
    expect(error).toMatchObject({ message: `cannot listen on 127.0.0.1:${loopback.port}`, cause: { code: 'EADDRINUSE' } })
    await second.drain()
  })

  it.each([{ stallMs: Number.NaN }, { maxConnections: Infinity }, { keepAliveMs: 0 }, { bodyGraceMs: -1 }])(
    'refuses the limit %j',
    (limits) => {
      expect(() => createHttpServer({ handler: hello, onError: () => {}, limits })).toThrow(Object.keys(limits)[0])
    },
  )
})

describe('drain', () => {
  it('lets requests in work finish, with Connection: close, and takes no new connection', async () => {
    let finish = () => {}
    await using loopback = await startServer(async (exchange) => {
      await new Promise<void>((resolve) => {
        finish = resolve
      })
      hello(exchange)
    })
    using client = await rawClient(loopback.port)
    client.write(get('/'))
    await eventually(() => loopback.server.stats.inFlight === 1)
    const drained = loopback.server.drain()
    expect(loopback.server.draining).toBe(true)
    await expect(rawClient(loopback.port)).rejects.toThrow('ECONNREFUSED')
    finish()
    expect(await client.untilClosed()).toMatch(/Connection: close[\s\S]*hello/)
    expect(await drained).toMatchObject({ aborted: 0 })
    expect(await loopback.server.drain()).toEqual(await drained)
  })

  it('answers 503 with Retry-After to what comes over a kept connection', async () => {
    await using loopback = await startServer(hello, { limits: { drainIdleMs: 5_000, retryAfterSeconds: 7 } })
    using kept = await rawClient(loopback.port)
    kept.write(get('/'))
    await kept.until('hello')
    const drained = loopback.server.drain()
    await pause(20)
    expect(kept.ended).toBe(false)
    kept.write(get('/late'))
    const answer = await kept.untilClosed()
    expect(answer).toMatch(/HTTP\/1.1 503 [\s\S]*Retry-After: 7\r\n/)
    expect(answer).toMatch(/503 [\s\S]*Connection: close/)
    expect(await drained).toMatchObject({ aborted: 0 })
  })

  it('closes idle connections when their time is over', async () => {
    await using loopback = await startServer(hello, { limits: { drainIdleMs: 50 } })
    using kept = await rawClient(loopback.port)
    kept.write(get('/'))
    await kept.until('hello')
    expect(await loopback.server.drain()).toMatchObject({ aborted: 0 })
    await kept.untilClosed()
  })

  it('ends at once when there is no connection', async () => {
    await using loopback = await startServer(hello, { limits: { drainIdleMs: 60_000 } })
    expect(await loopback.server.drain()).toMatchObject({ aborted: 0 })
  })

  it('cuts off what is left when the signal aborts, and counts it', async () => {
    const signals: AbortSignal[] = []
    await using loopback = await startServer(({ signal }) => {
      signals.push(signal)
      return never()
    })
    using client = await rawClient(loopback.port)
    client.write(get('/'))
    await eventually(() => signals.length === 1)
    const limit = new AbortController()
    const drained = loopback.server.drain(limit.signal)
    await pause(20)
    expect(client.ended).toBe(false)
    limit.abort()
    expect(await drained).toMatchObject({ aborted: 1 })
    await client.untilClosed()
    expect(signals[0]?.aborted).toBe(true)
    expect(loopback.server.stats).toMatchObject({ inFlight: 0, connections: 0 })
  })

  it.each(['before', 'during'])('is not waited for when the program of the server ends %s it', async (when) => {
    const closers = new Set<() => void>()
    const onEnd = (close: () => void) => {
      closers.add(close)
      return { [Symbol.dispose]: () => void closers.delete(close) }
    }
    const scope = { env: {}, cwd: '/', writeOutput: () => true, onEnd }
    const server = createHttpServer({ handler: never, onError: () => {} })
    const { port } = await runInScope(scope, () => server.listen({ host: '127.0.0.1', port: 0 }))
    using client = await rawClient(port)
    client.write(get('/'))
    await eventually(() => server.stats.inFlight === 1)
    const drained = when === 'during' ? server.drain() : undefined
    for (const close of closers) close()
    await client.untilClosed()
    await (drained ?? server.drain())
    await expect(rawClient(port)).rejects.toThrow('ECONNREFUSED')
    expect(closers.size).toBe(0)
  })

  it('does not hang on a client that does not read its answer', async () => {
    await using loopback = await startServer((exchange) => exchange.response.end(Buffer.alloc(32 << 20)) && undefined)
    using client = await rawClient(loopback.port, { paused: true })
    client.write(post('/', 'x'))
    await eventually(() => loopback.server.stats.inFlight === 1)
    expect(await loopback.server.drain(AbortSignal.timeout(100))).toMatchObject({ aborted: 1 })
  })
})
