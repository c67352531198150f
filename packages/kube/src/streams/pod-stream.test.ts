import { setTimeout as sleep } from 'node:timers/promises'
import { systemClock } from '@thv/kernel/clock'
import { startFaultyProxy } from '@thv/testkit/cluster/faults/faulty-proxy'
import { createCertificate } from '@thv/testkit/cluster/identity/certificate'
import { describe, expect, it } from 'vitest'
import { type AuthSource, bearerToken } from '../client/connection.ts'
import { KubeApiError } from '../client/kube-api-error.ts'
import { eventually } from '../testing/loopback-server.ts'
import { type PodServer, type PodServerOptions, type PodSession, startPodServer, success } from '../testing/pod-server.ts'
import { openPodStream, type PodStream, type PodStreamOptions } from './pod-stream.ts'

const place = { namespace: 'team', pod: 'web-0', container: 'mcp' }
const attach = { ...place, kind: 'attach', stdin: true, stdout: true } as const

async function open(
  server: PodServer,
  options: Partial<PodStreamOptions> = {},
  auth?: AuthSource,
): Promise<{ stream: PodStream; session: PodSession }> {
  const stream = await openPodStream(server.connection(auth), { ...attach, ...options })
  await eventually(() => server.sessions.length > 0)
  const session = server.sessions.at(-1)
  if (session === undefined) throw new Error('no session')
  return { stream, session }
}

async function all(source: AsyncIterable<Buffer>): Promise<string> {
  const chunks: Buffer[] = []
  for await (const chunk of source) chunks.push(chunk)
  return Buffer.concat(chunks).toString('utf8')
}

describe('openPodStream', () => {
  it('asks for the container and its streams, with protocol and token', async () => {
    await using server = await startPodServer()
    const { stream, session } = await open(server, { stderr: true, tty: true }, bearerToken('s3cret'))
    expect(session.url.pathname).toBe('/api/v1/namespaces/team/pods/web-0/attach')
    expect(session.url.search).toBe('?container=mcp&stdin=true&stdout=true&stderr=true&tty=true')
    expect(session.headers['sec-websocket-protocol']).toBe('v5.channel.k8s.io')
    expect(session.headers['sec-websocket-extensions']).toBeUndefined()
    expect(session.headers.authorization).toBe('Bearer s3cret')
    stream.close()
    await stream.done
  })

  it('passes the words of a command as they are', async () => {
    await using server = await startPodServer()
    const command = ['sh', '-c', 'echo "a&b=c" ü']
    const { stream, session } = await open(server, { kind: 'exec', command, stdin: false })
    expect(session.url.pathname).toBe('/api/v1/namespaces/team/pods/web-0/exec')
    expect(session.url.searchParams.getAll('command')).toEqual(command)
    expect(session.url.searchParams.has('stdin')).toBe(false)
    await expect(stream.write('x')).rejects.toMatchObject({ code: 'stream_closed' })
    stream.close()
  })

  it('carries bytes both ways, whole across frames, and the end of input', async () => {
    await using server = await startPodServer()
    const { stream, session } = await open(server, { stderr: true })
    const text = 'zwölf Boxkämpfer 🥊 '.repeat(20_000)
    await stream.write(text)
    await stream.write(new Uint8Array())
    await stream.closeStdin()
    await stream.closeStdin()
    await eventually(() => session.stdinEnded)
    expect(Buffer.concat(session.stdin).toString('utf8')).toBe(text)
    expect(Math.max(...session.stdin.map(({ length }) => length))).toBeLessThanOrEqual(32 << 10)
    await expect(stream.write('more')).rejects.toMatchObject({ code: 'stream_closed' })

    session.send(1, '')
    session.send(1, Buffer.from('ü').subarray(0, 1))
    session.send(1, Buffer.concat([Buffer.from('ü').subarray(1), Buffer.from(' out')]))
    session.send(2, 'err')
    session.status(success)
    session.socket.close(1000)
    expect(await Promise.all([all(stream.stdout), all(stream.stderr)])).toEqual(['ü out', 'err'])
    expect(await stream.done).toEqual({ status: { kind: 'Status', status: 'Success' }, exitCode: 0, error: undefined })
  })

  it('keeps the order of writes that are not awaited', async () => {
    await using server = await startPodServer()
    const { stream, session } = await open(server)
    const lines = Array.from({ length: 500 }, (_, n) => `${n}:${'x'.repeat(n * 20)}\n`)
    await Promise.all(lines.map((line) => stream.write(line)))
    await eventually(() => Buffer.concat(session.stdin).length === lines.join('').length)
    expect(Buffer.concat(session.stdin).toString('utf8')).toBe(lines.join(''))
    stream.close()
  })

  it('tells how the program ended', async () => {
    await using server = await startPodServer()
    const failed = {
      status: 'Failure',
      reason: 'NonZeroExitCode',
      message: 'command terminated with non-zero exit code',
      details: { causes: [{ reason: 'ExitCode', message: '7' }] },
    }
    const { stream, session } = await open(server)
    session.status(failed)
    session.socket.close(1000)
    expect(await stream.done).toMatchObject({ status: { status: 'Failure', reason: 'NonZeroExitCode' }, exitCode: 7, error: undefined })

    const other = await open(server)
    other.session.status({ status: 'Failure', reason: 'InternalError', message: 'container not running' })
    other.session.socket.close(1000)
    expect(await other.stream.done).toMatchObject({ status: { message: 'container not running' }, exitCode: undefined })
  })

  it('ends a stream whose channel the server closes, and leaves the other open', async () => {
    await using server = await startPodServer()
    const { stream, session } = await open(server, { stderr: true })
    session.send(2, 'last words')
    session.send(255, Buffer.from([2]))
    expect(await all(stream.stderr)).toBe('last words')
    session.send(1, 'still here')
    const reader = stream.stdout[Symbol.asyncIterator]()
    expect((await reader.next()).value?.toString()).toBe('still here')
    stream.close()
  })
})

describe('a refused handshake', () => {
  const status = (code: number, reason: string, message: string) => ({ kind: 'Status', status: 'Failure', code, reason, message })

  it.each([
    [403, 'Forbidden', 'pods "web-0" is forbidden'],
    [404, 'NotFound', 'pods "web-0" not found'],
    [500, 'InternalError', 'the node is gone'],
  ])('%i carries the message of the server', async (code, reason, message) => {
    await using server = await startPodServer({ refuse: () => ({ status: code, body: status(code, reason, message) }) })
    const error = await openPodStream(server.connection(), attach).catch((e: unknown) => e)
    expect(error).toBeInstanceOf(KubeApiError)
    expect(error).toMatchObject({ status: code, reason, message: `attach pods team/web-0: ${message} (${code} ${reason})` })
    await eventually(() => server.sockets.size === 0)
  })

  it('is tried once more after a 401, with a new token', async () => {
    await using server = await startPodServer({
      refuse: ({ headers }) =>
        headers.authorization === 'Bearer new' ? undefined : { status: 401, body: status(401, 'Unauthorized', 'no') },
    })
    let token = 'old'
    const renewed: AuthSource = {
      header: async () => `Bearer ${token}`,
      invalidate: () => {
        token = 'new'
      },
    }
    const { stream } = await open(server, {}, renewed)
    stream.close()
    const error = await openPodStream(server.connection(bearerToken('s3cret')), attach).catch((e: unknown) => e)
    expect(error).toMatchObject({ status: 401 })
    expect(String(error)).not.toContain('s3cret')
  })

  it('shows the page of a proxy in short', async () => {
    await using server = await startPodServer({ refuse: () => ({ status: 502, body: `<h1>Bad gateway</h1>${'x'.repeat(5_000)}` }) })
    const error = await openPodStream(server.connection(), attach).catch((e: unknown) => e)
    expect(error).toMatchObject({ status: 502 })
    expect(String(error).length).toBeLessThan(400)
  })

  it.each([
    ['the body never ends', { refuse: () => ({ status: 500, body: 'x', headers: { 'content-length': '100' }, hang: true }) }],
    ['no answer comes', { silent: true }],
  ] satisfies [string, PodServerOptions][])('ends at the limit when %s', async (_name, options) => {
    await using server = await startPodServer(options)
    const error = await openPodStream(server.connection(), { ...attach, openTimeoutMs: 200 }).catch((e: unknown) => e)
    expect(error).toMatchObject({ code: 'kube_unreachable', message: expect.stringContaining('not open within 200 ms') })
    await eventually(() => server.sockets.size === 0)
  })

  it('ends when the caller gives up', async () => {
    await using server = await startPodServer({ silent: true })
    const stop = new AbortController()
    const opening = openPodStream(server.connection(), { ...attach, signal: stop.signal })
    await eventually(() => server.sockets.size === 1)
    stop.abort(new Error('enough'))
    await expect(opening).rejects.toThrow('enough')
    await eventually(() => server.sockets.size === 0)
  })

  it.each([
    ['an older protocol', 'v4.channel.k8s.io'],
    ['no protocol', false],
  ] as const)('names what is missing when the server speaks %s', async (_name, protocol) => {
    await using server = await startPodServer({ protocol })
    const error = await openPodStream(server.connection(), attach).catch((e: unknown) => e)
    expect(error).toMatchObject({ code: 'kube_response_malformed', message: expect.stringContaining('v5.channel.k8s.io') })
  })

  it('is kube_unreachable when nothing listens, and never sends a token over plain http to another machine', async () => {
    const gone = await startPodServer()
    await gone[Symbol.asyncDispose]()
    await expect(openPodStream(gone.connection(), attach)).rejects.toMatchObject({
      code: 'kube_unreachable',
      details: { code: 'ECONNREFUSED' },
    })
    const far = { server: 'http://192.0.2.1', tls: {}, auth: bearerToken('s3cret') }
    await expect(openPodStream(far, attach)).rejects.toMatchObject({ code: 'kubeconfig_invalid' })
  })

  it('checks names and commands before anything is sent', async () => {
    await using server = await startPodServer()
    const bad = [{ pod: '../x' }, { namespace: 'a/b' }, { kind: 'exec' }, { kind: 'exec', command: [] }, { command: ['ls'] }] as const
    for (const options of bad) {
      await expect(openPodStream(server.connection(), { ...attach, ...options })).rejects.toMatchObject({ status: 400 })
    }
    expect(server.sockets.size).toBe(0)
  })
})

describe('TLS', () => {
  const certificate = (host: string) => {
    const { certPem, keyPem } = createCertificate({ commonName: host, hosts: [host], ca: true })
    return { cert: certPem, key: keyPem }
  }

  it('trusts the CA of the connection, and shows its client certificate', async () => {
    const ours = certificate('127.0.0.1')
    const me = certificate('me')
    await using server = await startPodServer({ tls: { ...ours, ca: me.cert } })
    const stream = await openPodStream(server.connection(bearerToken('t'), { ca: ours.cert, ...me }), attach)
    stream.close()
    await stream.done
    await expect(openPodStream(server.connection(bearerToken('t'), { ca: me.cert, ...me }), attach)).rejects.toMatchObject({
      code: 'kube_unreachable',
    })
    await expect(openPodStream(server.connection(bearerToken('t'), { ca: ours.cert }), attach)).rejects.toMatchObject({
      code: 'kube_unreachable',
    })
    expect(server.sessions).toHaveLength(1)
  })
})

describe('a stream under faults', () => {
  it('a connection that breaks in the middle of a frame ends the stream, with what came before', async () => {
    await using server = await startPodServer()
    const { stream, session } = await open(server)
    session.send(1, 'whole')
    session.raw.write(Buffer.from([0x82, 126, 0x10, 0x00, 1, 65, 66])) // 4096 bytes were promised
    await sleep(20)
    session.raw.destroy()
    expect(await all(stream.stdout)).toBe('whole')
    expect(await stream.done).toMatchObject({ status: undefined, exitCode: undefined, error: { code: 'kube_unreachable' } })
    await expect(stream.write('x')).rejects.toMatchObject({ code: 'stream_closed' })
  })

  it.each([
    ['a text frame', (session: PodSession) => session.socket.send('text')],
    ['a frame without a channel', (session: PodSession) => session.socket.send(Buffer.alloc(0))],
    ['an unknown channel', (session: PodSession) => session.send(9, 'x')],
    ['a frame over the limit', (session: PodSession) => session.send(1, Buffer.alloc(100_000))],
    ['a masked frame', (session: PodSession) => session.raw.write(Buffer.from([0x82, 0x81, 1, 2, 3, 4, 5]))],
  ])('gives up on %s', async (_name, send) => {
    await using server = await startPodServer()
    const { stream, session } = await open(server, { maxPayload: 65_536 })
    send(session)
    const { error } = await stream.done
    expect(error).toMatchObject({ code: expect.stringMatching(/^kube_(response_malformed|unreachable)$/) })
  })

  it('a status that is none is no status', async () => {
    await using server = await startPodServer()
    const { stream, session } = await open(server)
    session.send(3, '{"status":')
    session.socket.close(1000)
    expect(await stream.done).toEqual({ status: undefined, exitCode: undefined, error: undefined })
  })

  it('stops reading the socket while the stream is not read, and loses nothing', async () => {
    await using server = await startPodServer()
    const { stream, session } = await open(server, { maxBufferedBytes: 256 << 10 })
    const chunk = Buffer.alloc(32 << 10, 'x')
    const total = 64 << 20
    let sent = 0
    const flood = () => {
      while (sent < total && session.socket.bufferedAmount < 1 << 20) {
        session.send(1, chunk)
        sent += chunk.length
      }
      if (sent < total) setTimeout(flood, 2)
      else session.socket.close(1000)
    }
    flood()
    let before = -1
    await eventually(() => sent > 0)
    while (before !== sent) {
      before = sent
      await sleep(150)
    }
    expect(sent).toBeLessThan(total / 2) // what the sockets hold, and no more
    let read = 0
    for await (const { length } of stream.stdout) read += length
    expect(read).toBe(total)
    expect((await stream.done).error).toBeUndefined()
  })

  it('counts tiny frames for what they cost', async () => {
    await using server = await startPodServer()
    const { stream, session } = await open(server, { maxBufferedBytes: 64 << 10 })
    for (let n = 0; n < 20_000; n++) session.send(1, 'x')
    session.socket.close(1000)
    await sleep(100)
    expect(session.socket.readyState).not.toBe(session.socket.CLOSED)
    expect((await all(stream.stdout)).length).toBe(20_000)
  })

  it('a reader that leaves does not stop the other', async () => {
    await using server = await startPodServer()
    const { stream, session } = await open(server, { stderr: true, maxBufferedBytes: 64 << 10 })
    session.send(2, 'first')
    for await (const _chunk of stream.stderr) break
    for (let n = 0; n < 50; n++) session.send(2, Buffer.alloc(32 << 10))
    session.send(1, 'out')
    session.socket.close(1000)
    expect(await all(stream.stdout)).toBe('out')
  })

  it('makes the writer wait while the other side does not read', async () => {
    await using server = await startPodServer()
    const { stream, session } = await open(server)
    session.socket.pause()
    let written = 0
    let stopped = false
    const writing = (async () => {
      while (!stopped) {
        await stream.write(Buffer.alloc(32 << 10))
        written++
      }
    })().catch(() => {})
    // Each look is a turn in which more would be written if it could: one look alone may only mean that the machine was busy.
    let before = written
    for (let same = 0; same < 10; same = before === written ? same + 1 : 0) {
      before = written
      await sleep(20)
    }
    expect(written).toBeGreaterThan(0)
    stopped = true
    session.socket.resume()
    await writing
    expect(written).toBe(before + 1)
    stream.close()
  })

  it('finds a half-open connection by its pings', async () => {
    await using server = await startPodServer()
    await using proxy = await startFaultyProxy(server.url)
    const connection = { ...server.connection(), server: proxy.url }
    const stream = await openPodStream(connection, { ...attach, pingIntervalMs: 50, silenceLimitMs: 300 })
    await eventually(() => (server.sessions[0]?.pings ?? 0) >= 10) // longer than the limit, and it lives
    proxy.blackhole()
    expect((await stream.done).error).toMatchObject({
      code: 'kube_unreachable',
      cause: { message: expect.stringContaining('nothing was heard') },
    })
  })

  it('does not take its own pause for silence', async () => {
    await using server = await startPodServer()
    const { stream, session } = await open(server, { maxBufferedBytes: 1_000, pingIntervalMs: 20, silenceLimitMs: 100 })
    session.send(1, Buffer.alloc(5_000))
    await sleep(400)
    session.send(1, 'end')
    session.socket.close(1000)
    expect((await all(stream.stdout)).length).toBe(5_003)
    expect((await stream.done).error).toBeUndefined()
  })

  it('ends with the reason of its signal', async () => {
    await using server = await startPodServer()
    const stop = new AbortController()
    const { stream } = await open(server, { signal: stop.signal, clock: systemClock })
    stop.abort(new Error('enough'))
    expect((await stream.done).error).toMatchObject({ message: 'enough' })
    await eventually(() => server.sockets.size === 0)
  })

  it('closes, also when the other side does not answer or floods', async () => {
    await using server = await startPodServer()
    const { stream, session } = await open(server, { maxBufferedBytes: 1_000 })
    for (let n = 0; n < 200; n++) session.send(1, Buffer.alloc(32 << 10))
    await sleep(20)
    stream.close()
    stream.close()
    expect((await stream.done).error).toMatchObject({ code: 'aborted' })
    await eventually(() => server.sockets.size === 0)
  })
})
