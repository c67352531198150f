import { TestClock } from '@thv/kernel/clock'
import { describe, expect, it } from 'vitest'
import { eventually, get, type LoopbackServer, pause, type RawClient, rawClient, startServer } from '../testing/loopback.ts'
import type { Exchange } from './exchange.ts'
import { type FrameKind, openSse, type SseWriter, type SseWriterOptions } from './sse-writer.ts'

interface Stream extends AsyncDisposable {
  readonly loopback: LoopbackServer
  readonly client: RawClient
  readonly writer: SseWriter
  readonly exchange: Exchange
}

async function openStream(options: SseWriterOptions & { paused?: boolean } = {}): Promise<Stream> {
  const { paused = false, ...rest } = options
  const opened = Promise.withResolvers<{ writer: SseWriter; exchange: Exchange }>()
  const loopback = await startServer((exchange) => opened.resolve({ writer: openSse(exchange, rest), exchange }))
  const client = await rawClient(loopback.port, { paused })
  client.write(get('/stream'))
  const { writer, exchange } = await opened.promise
  return {
    loopback,
    client,
    writer,
    exchange,
    async [Symbol.asyncDispose]() {
      client[Symbol.dispose]()
      await loopback[Symbol.asyncDispose]()
    },
  }
}

const event = (text: string) => `data: ${text}\n\n`
/** More than the system's buffers of a loopback connection take. */
const big = event('x'.repeat(8 << 20))

describe('SseWriter', () => {
  it('sends its headers at once and each frame as it comes', async () => {
    await using stream = await openStream({ headers: ['Mcp-Session-Id', 'abc'] })
    const head = await stream.client.until('\r\n\r\n')
    expect(head).toMatch(/^HTTP\/1.1 200 OK\r\n/)
    for (const line of ['Content-Type: text/event-stream', 'Cache-Control: no-store', 'X-Accel-Buffering: no', 'Mcp-Session-Id: abc'])
      expect(head).toContain(`${line}\r\n`)
    expect(stream.writer.send(event('one'))).toBe('written')
    await stream.client.until(event('one'))
    expect(stream.writer.send(Buffer.from(event('two')))).toBe('written')
    await stream.client.until(event('two'))
  })

  it('ends at a frame boundary after everything was sent, and the connection is good for more', async () => {
    await using stream = await openStream()
    stream.writer.send(event('last'))
    await stream.writer.end()
    await stream.client.until(`${event('last')}\r\n0\r\n\r\n`)
    expect(stream.client.ended).toBe(false)
    expect(stream.writer.send(event('late'))).toBe('closed')
    expect(stream.exchange.aborted).toBe(false)
    await stream.writer.end()
  })

  it('sends a comment after a silence, and none while there is something to say', async () => {
    const clock = new TestClock()
    await using stream = await openStream({ clock, keepAliveMs: 1_000 })
    await clock.advance(999)
    stream.writer.send(event('one'))
    await clock.advance(999)
    await pause(10)
    expect(stream.client.received).not.toContain('keep-alive\n\n')
    await clock.advance(1)
    await stream.client.until(': keep-alive\n\n')
    await clock.advance(2_000)
    await eventually(() => stream.client.received.split(': keep-alive\n\n').length === 4)
    await stream.writer.end()
    expect(clock.pending).toBe(0)
  })

  it('stops its timers when the client goes away', async () => {
    const clock = new TestClock()
    await using stream = await openStream({ clock })
    expect(clock.pending).toBe(1)
    stream.client.socket.destroy()
    await eventually(() => stream.writer.closed)
    expect(clock.pending).toBe(0)
    expect(stream.writer.send(event('late'))).toBe('closed')
    await stream.writer.end()
    await expect(stream.writer.ready()).rejects.toMatchObject({ code: 'aborted' })
  })

  it('queues for a slow client, drops by kind, and delivers the rest in order when it reads again', async () => {
    const dropped: FrameKind[] = []
    await using stream = await openStream({ paused: true, maxFrames: 3, maxBytes: 64 << 20, onDrop: (kind) => dropped.push(kind) })
    const { writer, client } = stream
    expect(writer.send(big)).toBe('written')
    expect(writer.send(event('progress 1'), { kind: 'progress' })).toBe('queued')
    expect(writer.send(event('log 1'), { kind: 'log' })).toBe('queued')
    expect(writer.send(event('tools changed'), { key: 'tools' })).toBe('queued')
    expect(writer.send(event('tools changed'), { key: 'tools' })).toBe('coalesced')
    expect(writer.send(event('progress 2'), { kind: 'progress' })).toBe('queued')
    expect(writer.send(event('response'))).toBe('queued')
    expect(writer.pending).toBe(3)
    expect(dropped).toEqual(['progress', 'progress'])
    const ready = writer.ready()
    let text = ''
    client.socket.on('data', (chunk: Buffer) => (text += chunk.toString('latin1')))
    await ready
    await eventually(() => text.includes(event('response')))
    expect(text.split('\n\n').map((part) => /data: (\D[^\r\n]{0,15})/.exec(part)?.[1])).toEqual(
      expect.arrayContaining(['log 1', 'tools changed', 'response']),
    )
    expect(text.indexOf('log 1')).toBeLessThan(text.indexOf('tools changed'))
    expect(text.indexOf('tools changed')).toBeLessThan(text.indexOf('response'))
    expect(text).not.toContain('progress')
    expect(writer.pending).toBe(0)
    expect(writer.send(event('more'))).toBe('written')
  })

  it('cuts off a client that lets messages pile up, and says why', async () => {
    await using stream = await openStream({ paused: true, maxFrames: 2 })
    const { writer, exchange } = stream
    const { signal } = exchange
    const waiting = writer.ready()
    await waiting
    writer.send(big)
    const never = writer.ready()
    expect(writer.send(event('1'))).toBe('queued')
    expect(writer.send(event('2'))).toBe('queued')
    expect(writer.send(event('3'))).toBe('overflow')
    expect(signal.reason).toMatchObject({ code: 'queue_full' })
    expect(writer.closed).toBe(true)
    await expect(never).rejects.toMatchObject({ code: 'aborted' })
    await eventually(() => stream.loopback.server.stats.inFlight === 0)
    expect(stream.loopback.errors).toEqual([])
  })

  it('lets a source that waits give up', async () => {
    await using stream = await openStream({ paused: true })
    stream.writer.send(big)
    const stop = new AbortController()
    const waiting = stream.writer.ready(stop.signal)
    stop.abort(new Error('enough'))
    await expect(waiting).rejects.toThrow('enough')
    await expect(stream.writer.ready(stop.signal)).rejects.toThrow('enough')
  })

  it('waits a limited time for a client that does not take the end', async () => {
    const clock = new TestClock()
    await using stream = await openStream({ paused: true, clock, endTimeoutMs: 1_000 })
    stream.writer.send(big)
    const ended = stream.writer.end()
    await clock.advance(1_000)
    await ended
    expect(stream.exchange.signal.reason).toMatchObject({ code: 'timeout' })
    expect(clock.pending).toBe(0)
  })

  it('sends no comments into a connection that takes nothing', async () => {
    const clock = new TestClock()
    await using stream = await openStream({ paused: true, clock, keepAliveMs: 1_000 })
    stream.writer.send(big)
    const before = stream.exchange.response.writableLength
    await clock.advance(10_000)
    expect(stream.exchange.response.writableLength).toBe(before)
  })
})
