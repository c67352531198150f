import { type AddressInfo, createServer, type Server, type Socket } from 'node:net'
import { TestClock } from '@thv/kernel/clock'
import { ThvError } from '@thv/kernel/errors'
import { createCertificate } from '@thv/testkit/cluster/identity/certificate'
import { describe, expect, it } from 'vitest'
import { startBackend } from '../testing/backend.ts'
import { eventually, pause } from '../testing/loopback.ts'
import { parseCaBundle } from './ca-bundle.ts'
import { collect } from './collect.ts'
import { createOutbound, type OutboundOptions, type Target } from './outbound.ts'
import type { OutboundRequest, ResponseFlow } from './outbound-call.ts'
import { OutboundError } from './outbound-error.ts'

type Options = Partial<OutboundRequest> & { maxResponseBytes?: number }
const request = (options: Options = {}) => ({ method: 'GET', path: '/', headers: [], maxResponseBytes: 1_000, ...options })
const ask = (target: Target, options?: Options) => collect(target, request(options))
const failureOf = async (work: Promise<unknown>) => {
  const error = await work.catch((e: unknown) => e)
  expect(error).toBeInstanceOf(ThvError)
  return error as OutboundError
}

describe('send', () => {
  it('sends method, path, headers and body, and gives the answer back', async () => {
    await using backend = await startBackend(
      (_request, response) => response.writeHead(201, { 'x-b': '2', 'set-cookie': ['a', 'b'] }).end('answer') && undefined,
    )
    await using outbound = createOutbound()
    const target = outbound.target({ url: `${backend.url}/ignored` })
    const answer = await ask(target, {
      method: 'POST',
      path: '/a?b=c',
      headers: ['x-a', '1', 'content-type', 'text/plain'],
      body: Buffer.from('body'),
    })
    expect(answer).toMatchObject({ status: 201, headers: { 'x-b': '2', 'set-cookie': ['a', 'b'] } })
    expect(answer.body.toString()).toBe('answer')
    expect(backend.requests).toMatchObject([
      { method: 'POST', url: '/a?b=c', body: 'body', headers: { 'x-a': '1', host: `127.0.0.1:${backend.port}`, 'content-length': '4' } },
    ])
  })

  it('sends another Host where one is given, and then the backend sees another origin', async () => {
    await using backend = await startBackend((_request, response) => void response.end())
    await using outbound = createOutbound()
    const [plain, other] = [outbound.target({ url: backend.url }), outbound.target({ url: backend.url, hostHeader: 'localhost:8017' })]
    for (const target of [plain, other]) await ask(target, { headers: ['x-a', '1'] })
    expect(backend.requests.map(({ headers }) => headers['host'])).toEqual([`127.0.0.1:${backend.port}`, 'localhost:8017'])
    expect([plain.seenOrigin, other.seenOrigin]).toEqual([backend.url, 'http://localhost:8017'])
  })

  it('takes views and texts for a body', async () => {
    await using backend = await startBackend((_request, response) => void response.end())
    await using outbound = createOutbound()
    const target = outbound.target({ url: backend.url })
    await ask(target, { method: 'POST', body: Uint8Array.of(0, 65, 66, 0).subarray(1, 3) })
    await ask(target, { method: 'POST', body: 'text' })
    await ask(target, { method: 'POST', body: null })
    expect(backend.requests.map(({ body }) => body)).toEqual(['AB', 'text', ''])
  })

  it('keeps its connections for calls that come one after the other', async () => {
    await using backend = await startBackend((_request, response) => void response.end('x'))
    await using outbound = createOutbound()
    const target = outbound.target({ url: backend.url })
    for (let i = 0; i < 20; i++) await ask(target)
    expect(backend.connections).toBeLessThanOrEqual(2) // undici lets a connection rest for one turn before it uses it again
    expect(outbound.stats).toEqual({ pools: 1, inFlight: 0 })
  })

  it('has one target and pool for the same options, and others for others', async () => {
    await using backend = await startBackend((_request, response) => void response.end('x'))
    await using outbound = createOutbound()
    const target = outbound.target({ url: backend.url })
    expect(outbound.target({ url: `${backend.url}/path` })).toBe(target)
    expect(outbound.target({ url: backend.url, serverName: 'x' })).not.toBe(target)
    expect(outbound.target({ url: backend.url, policy: { allowLoopback: true } })).not.toBe(target)
  })

  it('does not pass informational answers on', async () => {
    await using backend = await startBackend((_request, response) => {
      response.writeEarlyHints({ link: '</x>; rel=preload' })
      response.end('final')
    })
    await using outbound = createOutbound()
    expect((await ask(outbound.target({ url: backend.url }))).status).toBe(200)
  })
})

describe('pools', () => {
  it('bound the connections for requests, and let streams be', async () => {
    await using backend = await startBackend((seen, response) => {
      response.writeHead(200)
      if (seen.url === '/stream') response.write('open')
      else setTimeout(() => response.end('x'), 30)
    })
    await using outbound = createOutbound({ maxConnections: 2 })
    const target = outbound.target({ url: backend.url })
    const stop = new AbortController()
    const streams = Array.from({ length: 5 }, () => failureOf(ask(target, { path: '/stream', purpose: 'stream', signal: stop.signal })))
    await eventually(() => backend.connections === 5)
    await Promise.all(Array.from({ length: 6 }, () => ask(target)))
    expect(backend.connections).toBe(7)
    expect(outbound.stats).toEqual({ pools: 2, inFlight: 5 })
    stop.abort()
    for (const error of await Promise.all(streams)) expect(error.code).toBe('aborted')
    expect(outbound.stats.inFlight).toBe(0)
  })

  it('refuse what would wait in too long a queue', async () => {
    await using backend = await startBackend(() => {})
    await using outbound = createOutbound({ maxConnections: 1, maxWaiting: 1 })
    const target = outbound.target({ url: backend.url })
    const stop = new AbortController()
    const waiting = [ask(target, { signal: stop.signal }), ask(target, { signal: stop.signal })].map(failureOf)
    const busy = await failureOf(ask(target))
    expect(busy).toMatchObject({ code: 'backend_busy', sent: false })
    stop.abort()
    await Promise.all(waiting)
    expect(outbound.stats.inFlight).toBe(0)
  })

  it('are closed when unused, and come back with use', async () => {
    const clock = new TestClock()
    await using backend = await startBackend((seen, response) => (seen.url === '/hang' ? undefined : void response.end('x')))
    await using outbound = createOutbound({ clock, poolIdleMs: 1_000, keepAliveMs: 60_000 })
    const target = outbound.target({ url: backend.url })
    await ask(target)
    const stop = new AbortController()
    const hanging = failureOf(ask(target, { path: '/hang', purpose: 'stream', signal: stop.signal }))
    await eventually(() => backend.connections === 2)
    await clock.advance(2_000)
    expect(outbound.stats).toEqual({ pools: 1, inFlight: 1 }) // the stream's stays
    await eventually(() => backend.sockets.size === 1)
    stop.abort()
    await hanging
    await clock.advance(2_000)
    expect(outbound.stats.pools).toBe(0)
    expect(clock.pending).toBe(0)
    await ask(target)
    expect(outbound.stats.pools).toBe(1)
    expect(backend.connections).toBe(3)
  })

  it('are broken off by close', async () => {
    await using backend = await startBackend(() => {})
    const outbound = createOutbound()
    const target = outbound.target({ url: backend.url })
    const pending = failureOf(ask(target))
    await eventually(() => backend.requests.length === 1)
    await outbound.close()
    expect((await pending).code).toBe('aborted')
    expect((await failureOf(ask(target))).code).toBe('aborted')
    await eventually(() => backend.sockets.size === 0)
    expect(outbound.stats).toEqual({ pools: 0, inFlight: 0 })
  })
})

describe('aborts', () => {
  it('tell the caller at once and free the connection of the backend', async () => {
    await using backend = await startBackend(() => {})
    await using outbound = createOutbound()
    const target = outbound.target({ url: backend.url })
    const stop = new AbortController()
    const pending = failureOf(ask(target, { signal: stop.signal }))
    await eventually(() => backend.requests.length === 1)
    stop.abort(new Error('enough'))
    expect(await pending).toMatchObject({ code: 'aborted', details: { sent: true, answered: false }, cause: { message: 'enough' } })
    await eventually(() => backend.sockets.size === 0)
  })

  it('pass a coded reason on', async () => {
    await using backend = await startBackend(() => {})
    await using outbound = createOutbound()
    const reason = new ThvError('timeout', 'took too long')
    const error = await failureOf(ask(outbound.target({ url: backend.url }), { signal: AbortSignal.abort(reason) }))
    expect(error).toBe(reason)
    expect(backend.requests).toHaveLength(0)
  })

  it('do not wait for a connection, and leave the one that others use', async () => {
    await using backend = await startBackend((_request, response) => void setTimeout(() => response.end('x'), 50))
    await using outbound = createOutbound({ maxConnections: 1 })
    const target = outbound.target({ url: backend.url })
    const first = ask(target)
    const stop = new AbortController()
    const second = failureOf(ask(target, { path: '/second', signal: stop.signal }))
    const third = ask(target, { path: '/third' })
    stop.abort()
    expect(await second).toMatchObject({ code: 'aborted', details: { sent: false } })
    await Promise.all([first, third])
    expect(backend.requests.map(({ url }) => url)).toEqual(['/', '/third'])
    expect(backend.connections).toBe(1)
  })

  it('leave no listener on a signal that lives long', async () => {
    await using backend = await startBackend((_request, response) => void response.end('x'))
    await using outbound = createOutbound()
    const target = outbound.target({ url: backend.url })
    const { signal } = new AbortController()
    let listeners = 0
    const add = signal.addEventListener.bind(signal)
    const remove = signal.removeEventListener.bind(signal)
    signal.addEventListener = (...args: Parameters<typeof add>) => {
      listeners++
      add(...args)
    }
    signal.removeEventListener = (...args: Parameters<typeof remove>) => {
      listeners--
      remove(...args)
    }
    for (let i = 0; i < 5; i++) await ask(target, { signal })
    expect(listeners).toBe(0)
  })
})

/** A TCP server that treats its connections as told. */
async function startTcp(treat: (socket: Socket) => void): Promise<Server & AsyncDisposable & { url: string }> {
  const sockets = new Set<Socket>()
  const server = createServer((socket) => {
    sockets.add(socket)
    socket.on('error', () => {})
    treat(socket)
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  return Object.assign(server, {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    async [Symbol.asyncDispose]() {
      for (const socket of sockets) socket.destroy()
      await new Promise((resolve) => server.close(resolve))
    },
  })
}

describe('failures', () => {
  const cases: [string, (socket: Socket) => void, Partial<OutboundError>][] = [
    [
      'a connection that closes',
      (socket) => socket.once('data', () => socket.destroy()),
      { code: 'backend_reset' as never, sent: true, answered: false },
    ],
    [
      'a reset',
      (socket) => socket.once('data', () => socket.resetAndDestroy()),
      { code: 'backend_reset' as never, sent: true, answered: false },
    ],
    [
      'what is no HTTP',
      (socket) => socket.once('data', () => socket.end('SSH-2.0-x\r\n')),
      { code: 'backend_protocol' as never, sent: true },
    ],
    [
      'an answer shorter than it said',
      (socket) => socket.once('data', () => socket.end('HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nhalf')),
      { sent: true, answered: true },
    ],
    [
      'chunks that do not end',
      (socket) => socket.once('data', () => socket.end('HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n4\r\nhalf\r\n')),
      { sent: true, answered: true },
    ],
    [
      'huge headers',
      (socket) => socket.once('data', () => socket.write(`HTTP/1.1 200 OK\r\nX: ${'x'.repeat(100_000)}\r\n\r\n`)),
      { code: 'backend_protocol' as never, sent: true },
    ],
    [
      'too large an answer by its length',
      (socket) => socket.once('data', () => socket.write('HTTP/1.1 200 OK\r\nContent-Length: 1001\r\n\r\n')),
      { code: 'backend_response_too_large' as never, sent: true, answered: true },
    ],
    [
      'too large an answer by counting',
      (socket) =>
        socket.once('data', () => socket.write(`HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3e9\r\n${'x'.repeat(1001)}\r\n`)),
      { code: 'backend_response_too_large' as never, sent: true, answered: true },
    ],
  ]
  it.each(cases)('names %s', async (_name, treat, expected) => {
    await using server = await startTcp(treat)
    await using outbound = createOutbound()
    const error = await failureOf(ask(outbound.target({ url: server.url }), { method: 'POST', body: 'x' }))
    expect(error).toBeInstanceOf(OutboundError)
    expect(error).toMatchObject(expected)
    expect(error.message).toContain(server.url)
    expect(outbound.stats.inFlight).toBe(0)
  })

  it('names a port where nothing listens, and knows that nothing was sent', async () => {
    const server = await startTcp(() => {})
    await server[Symbol.asyncDispose]()
    await using outbound = createOutbound()
    const error = await failureOf(ask(outbound.target({ url: server.url })))
    expect(error).toMatchObject({ code: 'backend_refused', sent: false, answered: false, details: { reason: 'ECONNREFUSED' } })
    expect(error.message).toBe(`${server.url} refused the connection (ECONNREFUSED)`)
  })

  it('names a host that does not resolve', async () => {
    const options: OutboundOptions = {
      resolve: () => Promise.reject(Object.assign(new Error('getaddrinfo ENOTFOUND x'), { code: 'ENOTFOUND' })),
    }
    await using outbound = createOutbound(options)
    expect(await failureOf(ask(outbound.target({ url: 'http://nowhere.example' })))).toMatchObject({ code: 'backend_dns', sent: false })
  })

  it('names a backend that says nothing', async () => {
    await using server = await startTcp(() => {})
    await using outbound = createOutbound()
    const target = outbound.target({ url: server.url })
    expect(await failureOf(ask(target, { headersTimeoutMs: 100 }))).toMatchObject({ code: 'backend_timeout', sent: true, answered: false })
  })

  it('names a backend that stops in the middle, but not a stream', async () => {
    await using backend = await startBackend((_request, response) => {
      response.writeHead(200)
      response.write('begun')
    })
    await using outbound = createOutbound({ bodyTimeoutMs: 100 })
    const target = outbound.target({ url: backend.url })
    const stop = new AbortController()
    const stream = failureOf(ask(target, { purpose: 'stream', signal: stop.signal }))
    expect(await failureOf(ask(target))).toMatchObject({ code: 'backend_timeout', sent: true, answered: true })
    await pause(300)
    expect(outbound.stats.inFlight).toBe(1)
    stop.abort()
    await stream
  })

  it('passes on what the sink throws, and ends the call', async () => {
    await using backend = await startBackend((_request, response) => void response.end('x'))
    await using outbound = createOutbound()
    const target = outbound.target({ url: backend.url })
    const oops = new Error('oops')
    for (const step of ['start', 'data', 'end']) {
      const sink = {
        start: () => {},
        data: () => {},
        end: () => {},
        [step]: () => {
          throw oops
        },
      }
      await expect(target.send(request(), sink)).rejects.toBe(oops)
    }
    expect(outbound.stats.inFlight).toBe(0)
    expect((await ask(target)).status).toBe(200)
  })

  it.each([
    ['http://169.254.169.254', {}, 'link-local'],
    ['http://127.0.0.1:1', {}, 'loopback address'],
    ['ftp://example.com', undefined, 'scheme ftp'],
    ['http://user:hunter2@example.com', undefined, 'user name or password'],
    ['nonsense', undefined, 'not a URL'],
  ])('refuses %s before anything is called', async (url, policy, message) => {
    await using outbound = createOutbound(policy ? { policy } : {})
    const make = () => outbound.target({ url })
    expect(make).toThrow(message)
    expect(make).toThrow(OutboundError)
    expect(make).not.toThrow('hunter2')
  })

  it('refuses what a name resolves to', async () => {
    await using outbound = createOutbound({ policy: {}, resolve: async () => [{ address: '127.0.0.1' }] })
    const error = await failureOf(ask(outbound.target({ url: 'http://innocent.example' })))
    expect(error).toMatchObject({ code: 'backend_blocked', sent: false, message: 'innocent.example: 127.0.0.1 is a loopback address' })
  })

  it('does not name the path or the headers', async () => {
    await using server = await startTcp((socket) => socket.once('data', () => socket.destroy()))
    await using outbound = createOutbound()
    const error = await failureOf(
      ask(outbound.target({ url: server.url }), { path: '/?token=hunter2', headers: ['authorization', 'Bearer hunter2'] }),
    )
    expect(JSON.stringify([error.message, error.details, String(error.cause)])).not.toContain('hunter2')
  })

  it.each([
    ['a header', { headers: ['x', 'a\r\nb: c'] }],
    ['a header of the connection', { headers: ['transfer-encoding', 'chunked'] }],
    ['a length of its own', { method: 'POST', body: 'four', headers: ['content-length', '5'] }],
    ['a path', { path: '*' }],
    ['a path with a line break', { path: '/ HTTP/1.1\r\nx: y' }],
    ['a method', { method: 'G ET' }],
  ])('names %s that cannot be sent', async (_name, options) => {
    await using backend = await startBackend((_request, response) => void response.end())
    await using outbound = createOutbound()
    const error = await failureOf(ask(outbound.target({ url: backend.url }), options))
    expect(error).toMatchObject({ code: 'backend_request_invalid', sent: false })
    expect(backend.requests).toHaveLength(0)
    expect(outbound.stats.inFlight).toBe(0)
  })
})

describe('back-pressure', () => {
  it('stops the backend while the sink is paused', async () => {
    let written = 0
    await using backend = await startBackend(async (_request, response) => {
      response.writeHead(200)
      const part = Buffer.alloc(64 * 1024)
      for (let i = 0; i < 800; i++) {
        written += part.length
        if (!response.write(part)) await new Promise((resolve) => response.once('drain', resolve))
      }
      response.end()
    })
    await using outbound = createOutbound()
    let received = 0
    let flow: ResponseFlow | undefined
    const done = outbound.target({ url: backend.url }).send(request({ maxResponseBytes: 1 << 30 }), {
      start(_status, _headers, given) {
        flow = given
        given.pause()
      },
      data(chunk) {
        received += chunk.length
      },
      end() {},
    })
    await eventually(() => flow !== undefined)
    await pause(200)
    expect(received).toBe(0)
    expect(written).toBeLessThan(800 * 64 * 1024)
    flow?.resume()
    await done
    expect(received).toBe(800 * 64 * 1024)
  })
})

describe('TLS', () => {
  const ca = createCertificate({ commonName: 'test ca', ca: true })
  const server = createCertificate({ commonName: 'server', hosts: ['127.0.0.1', 'backend.example'], issuer: ca })
  const bundle = parseCaBundle(ca.certPem, { name: 'test' })

  it('trusts a bundle, by address and by name, and HTTP/1.1 only', async () => {
    await using backend = await startBackend((seen, response) => void response.end(String(seen.headers.host)), server)
    await using outbound = createOutbound({ resolve: async () => [{ address: '127.0.0.1', port: backend.port }] })
    expect((await ask(outbound.target({ url: backend.url, ca: bundle }))).status).toBe(200)
    const byName = outbound.target({ url: 'https://backend.example', ca: bundle })
    expect((await ask(byName)).body.toString()).toBe('backend.example')
    for (let i = 0; i < 5; i++) await ask(byName)
    expect(backend.connections).toBeLessThanOrEqual(3)
  })

  it.each([
    ['an unknown issuer', {}, 'backend.example', 'UNABLE_TO_VERIFY_LEAF_SIGNATURE'],
    ['another name', { ca: bundle }, 'other.example', 'ERR_TLS_CERT_ALTNAME_INVALID'],
  ])('does not trust %s', async (_name, options, host, reason) => {
    await using backend = await startBackend((_request, response) => void response.end('x'), server)
    await using outbound = createOutbound({ resolve: async () => [{ address: '127.0.0.1', port: backend.port }] })
    const error = await failureOf(ask(outbound.target({ url: `https://${host}`, ...options })))
    expect(error).toMatchObject({ code: 'backend_tls', sent: false, details: { reason } })
    expect(backend.requests).toHaveLength(0)
  })

  it('verifies another name when told', async () => {
    await using backend = await startBackend((_request, response) => void response.end('x'), server)
    await using outbound = createOutbound({ resolve: async () => [{ address: '127.0.0.1', port: backend.port }] })
    const target = outbound.target({ url: 'https://other.example', ca: bundle, serverName: 'backend.example' })
    expect((await ask(target)).status).toBe(200)
  })

  it('names a backend that speaks no TLS', async () => {
    await using backend = await startBackend((_request, response) => void response.end('x'))
    await using outbound = createOutbound()
    const error = await failureOf(ask(outbound.target({ url: backend.url.replace('http:', 'https:') })))
    expect(error).toMatchObject({ code: 'backend_tls', sent: false })
  })
})
