import { TestClock } from '@thv/kernel/clock'
import { describe, expect, it } from 'vitest'
import { eventually, get, pause, post, rawClient, rawExchange, startServer } from '../testing/loopback.ts'
import type { Exchange } from './exchange.ts'
import { readBody } from './read-body.ts'
import { sendText } from './respond.ts'

const close = 'Connection: close'
const chunked = (...headers: string[]) =>
  ['POST / HTTP/1.1', 'Host: a', 'Transfer-Encoding: chunked', ...headers].join('\r\n').concat('\r\n\r\n')
const chunk = (text: string) => `${Buffer.byteLength(text).toString(16)}\r\n${text}\r\n`

/** Answers with length and a digest of the body, or lets the error become the answer. */
const echo = (maxBytes: number) => async (exchange: Exchange) => {
  const body = await readBody(exchange, maxBytes)
  sendText(exchange, `got ${body.length}:${body.subarray(0, 20).toString()}~${body.subarray(-5).toString()}.`)
}

describe('readBody', () => {
  it('reads a body with a length, up to exactly the limit', async () => {
    await using loopback = await startServer(echo(10))
    expect(await rawExchange(loopback.port, post('/', '0123456789', [close]))).toContain('got 10:0123456789~56789.')
  })

  it.each([
    ['GET', get('/', [close])],
    ['POST of length 0', post('/', '', [close])],
    ['POST without a length', 'POST / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n'],
    ['an empty chunked body', `${chunked(close)}0\r\n\r\n`],
  ])('gives an empty buffer for %s', async (_name, text) => {
    await using loopback = await startServer(echo(10))
    expect(await rawExchange(loopback.port, text)).toContain('got 0:')
  })

  it('puts a body together that comes in pieces', async () => {
    await using loopback = await startServer(echo(1 << 20))
    using client = await rawClient(loopback.port)
    const text = 'abcdefghij'.repeat(10_000)
    const whole = post('/', text, [close])
    for (let i = 0; i < whole.length; i += 33_333) {
      client.write(whole.slice(i, i + 33_333))
      await pause(5)
    }
    expect(await client.untilClosed()).toContain('got 100000:abcdefghijabcdefghij~fghij.')
  })

  it('puts very many tiny chunks together', async () => {
    const bodies: Buffer[] = []
    await using loopback = await startServer(async (exchange) => {
      bodies.push(await readBody(exchange, 1 << 20))
      sendText(exchange, 'done')
    })
    const digits = Array.from({ length: 50_000 }, (_, i) => String(i % 10))
    expect(await rawExchange(loopback.port, `${chunked(close)}${digits.map(chunk).join('')}0\r\n\r\n`)).toContain('done')
    expect(bodies[0]?.toString()).toBe(digits.join(''))
  })

  it('does not copy a body that comes in one piece', async () => {
    const bodies: Buffer[] = []
    const pieces: Buffer[] = []
    await using loopback = await startServer(async (exchange) => {
      exchange.request.on('data', (piece: Buffer) => pieces.push(piece))
      bodies.push(await readBody(exchange, 1 << 20))
      sendText(exchange, 'done')
    })
    await rawExchange(loopback.port, post('/', 'x'.repeat(1_000), [close]))
    expect(pieces).toHaveLength(1)
    expect(bodies[0]).toBe(pieces[0])
  })

  it('refuses a length over the limit with 413, before the body has come', async () => {
    await using loopback = await startServer(echo(10))
    using client = await rawClient(loopback.port)
    client.write('POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 11\r\n\r\n')
    expect(await client.until('larger than 10 bytes')).toContain('HTTP/1.1 413 ')
    client.write(`01234567890${post('/next', 'ok', [close])}`)
    expect(await client.untilClosed()).toContain('got 2:ok') // the connection stayed in step
  })

  it('counts a chunked body and refuses it with 413', async () => {
    await using loopback = await startServer(echo(10))
    using client = await rawClient(loopback.port)
    client.write(`${chunked()}${chunk('0123456789')}${chunk('x')}`)
    expect(await client.until('larger than 10 bytes')).toContain('HTTP/1.1 413 ')
    client.write(`${chunk('more')}0\r\n\r\n${post('/next', 'ok', [close])}`)
    expect(await client.untilClosed()).toContain('got 2:ok')
  })

  it('limits the reading of a rejected body', async () => {
    await using loopback = await startServer(echo(10))
    using client = await rawClient(loopback.port)
    client.write(`POST / HTTP/1.1\r\nHost: a\r\nContent-Length: ${1 << 30}\r\n\r\n`)
    await client.until('HTTP/1.1 413 ')
    const part = Buffer.alloc(64 * 1024)
    let written = 0
    while (!client.closed && !client.ended && written < 100 << 20) {
      client.write(part)
      written += part.length
      await pause(1)
    }
    expect(written).toBeLessThan(100 << 20)
  })

  it.each(['gzip', 'br', 'identity, gzip'])('refuses content-encoding %s with 415', async (encoding) => {
    await using loopback = await startServer(echo(10))
    expect(await rawExchange(loopback.port, post('/', 'x', [`Content-Encoding: ${encoding}`, close]))).toContain('HTTP/1.1 415 ')
  })

  it.each(['identity', 'Identity'])('takes content-encoding %s', async (encoding) => {
    await using loopback = await startServer(echo(10))
    expect(await rawExchange(loopback.port, post('/', 'x', [`Content-Encoding: ${encoding}`, close]))).toContain('got 1:x')
  })

  it('rejects with aborted when the client goes away, and reports nothing', async () => {
    const failures: unknown[] = []
    await using loopback = await startServer(async (exchange) => {
      await readBody(exchange, 100).catch((error) => {
        failures.push(error)
        throw error
      })
    })
    using client = await rawClient(loopback.port)
    client.write('POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 11\r\n\r\nhalf')
    await eventually(() => loopback.server.stats.inFlight === 1)
    client.socket.destroy()
    await eventually(() => failures.length === 1)
    expect(failures[0]).toMatchObject({ code: 'aborted' })
    await eventually(() => loopback.server.stats.inFlight === 0)
    expect(loopback.errors).toEqual([])
  })

  it('rejects with aborted when the chunks are no chunks', async () => {
    await using loopback = await startServer(echo(100))
    expect(await rawExchange(loopback.port, `${chunked()}zz\r\n`)).toMatch(/^HTTP\/1.1 400 /)
    await eventually(() => loopback.server.stats.inFlight === 0)
    expect(loopback.errors).toEqual([])
  })

  it('tells the client to continue only when it wants the body', async () => {
    await using loopback = await startServer(echo(10))
    const expects = (length: number) => `POST / HTTP/1.1\r\nHost: a\r\nExpect: 100-continue\r\nContent-Length: ${length}\r\n\r\n`
    using good = await rawClient(loopback.port)
    good.write(expects(2))
    await good.until('HTTP/1.1 100 Continue')
    good.write('ok')
    await good.until('got 2:ok')
    const refused = await rawExchange(loopback.port, expects(11))
    expect(refused).toMatch(/^HTTP\/1.1 413 /)
    expect(refused).toContain('Connection: close')
  })

  it('is read once only', async () => {
    await using loopback = await startServer(async (exchange) => {
      await readBody(exchange, 10)
      await readBody(exchange, 10)
    })
    await rawExchange(loopback.port, post('/', 'x', [close]))
    expect(loopback.errors).toMatchObject([{ message: expect.stringContaining('only once') }])
  })
})

describe('slow bodies', () => {
  const limits = { bodyTimeoutMs: 60_000, bodyGraceMs: 5_000, minBodyBytesPerSecond: 100 }

  async function sendSlowly(bytesPerSecond: number, seconds: number) {
    const clock = new TestClock()
    await using loopback = await startServer(echo(1 << 20), { clock, limits })
    using client = await rawClient(loopback.port)
    client.write(`POST / HTTP/1.1\r\nHost: a\r\nContent-Length: ${1 << 20}\r\n\r\n`)
    await eventually(() => clock.pending === 1) // its body is being watched
    for (let i = 0; i < seconds && client.received === ''; i++) {
      client.write('x'.repeat(bytesPerSecond))
      await pause(5)
      await clock.advance(1_000)
    }
    await pause(20)
    return { answer: client.received, seconds: clock.monotonic() / 1_000 }
  }

  it('are refused with 408 below the minimum rate, after their grace', async () => {
    const { answer, seconds } = await sendSlowly(50, 30)
    expect(answer).toMatch(/^HTTP\/1.1 408 [\s\S]*Connection: close/)
    expect(seconds).toBeGreaterThan(5)
    expect(seconds).toBeLessThan(10)
  })

  it('are taken above it', async () => {
    expect((await sendSlowly(200, 30)).answer).toBe('')
  })

  it('are refused at the limit however fast they come', async () => {
    const { answer, seconds } = await sendSlowly(200, 70)
    expect(answer).toMatch(/^HTTP\/1.1 408 /)
    expect(seconds).toBeGreaterThan(60)
  })

  it('that the handler does not read are ended by the limit of the whole request', async () => {
    await using loopback = await startServer((exchange) => sendText(exchange, 'not interested'), {
      limits: { headersTimeoutMs: 100, bodyTimeoutMs: 50 },
    })
    using client = await rawClient(loopback.port)
    client.write('POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 100\r\n\r\nhalf')
    await client.until('not interested')
    expect(await client.untilClosed()).toContain('not interested')
  })
})
