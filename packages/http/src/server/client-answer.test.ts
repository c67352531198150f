import { describe, expect, it } from 'vitest'
import { eventually, get, pause, rawClient, rawExchange, startServer } from '../testing/loopback.ts'
import { ClientAnswer } from './client-answer.ts'
import type { Exchange } from './exchange.ts'

const CLOSE = get('/', ['Connection: close'])
const TYPE = { 'content-type': 'text/event-stream' }

async function answerOf(handler: (exchange: Exchange) => void | Promise<void>): Promise<string> {
  await using loopback = await startServer(handler)
  const answer = await rawExchange(loopback.port, CLOSE)
  expect(loopback.errors).toEqual([])
  return answer
}

describe('an answer from a backend', () => {
  it('goes out whole, with its own length and without what belongs to the backend’s connection', async () => {
    const headers = {
      'content-length': '99',
      connection: 'x-hop',
      'x-hop': '1',
      'x-many': ['a', 'b'],
      'set-cookie': ['a', 'b'],
      'access-control-allow-origin': '*',
      'x-none': undefined,
    }
    const answer = await answerOf((exchange) => new ClientAnswer(exchange).whole(201, headers, Buffer.from('body')))
    expect(answer).toMatch(/^HTTP\/1.1 201 Created\r\nx-many: a\r\nx-many: b\r\ncontent-length: 4\r\n[\s\S]*\r\n\r\nbody$/)
    expect(answer).not.toContain('x-hop')
  })

  it.each([204, 304])('with status %i has no length', async (status) => {
    const answer = await answerOf((exchange) => new ClientAnswer(exchange).whole(status, {}, Buffer.alloc(0)))
    expect(answer).not.toMatch(/content-length|transfer-encoding/i)
  })

  it('of several pieces keeps their order, whenever they come', async () => {
    const answer = await answerOf(async (exchange) => {
      const answer = new ClientAnswer(exchange)
      answer.begin(200, TYPE, ['x-a', '1'])
      expect(answer.begun).toBe(true)
      answer.write(Buffer.from('one,'), undefined)
      answer.write(Buffer.from('two,'), undefined)
      await pause(5)
      answer.write(Buffer.from('three'), undefined)
      answer.end()
    })
    expect(answer).toMatch(/content-type: text\/event-stream\r\nx-a: 1\r\n[\s\S]*transfer-encoding: chunked/i)
    expect(answer.replace(/\r\n[0-9a-f]+\r\n/g, '')).toMatch(/one,.*two,.*three/s)
  })

  it('shows its head and what there is at the end of the tick, not at the end of the answer', async () => {
    const answers: ClientAnswer[] = []
    await using loopback = await startServer((exchange) => {
      const answer = new ClientAnswer(exchange)
      answers.push(answer)
      answer.begin(200, TYPE)
      if (exchange.path === '/first') answer.write(Buffer.from('first'), undefined)
    })
    using silent = await rawClient(loopback.port)
    silent.write(get('/'))
    expect(await silent.until('\r\n\r\n')).toMatch(/^HTTP\/1\.1 200 /)
    using first = await rawClient(loopback.port)
    first.write(get('/first'))
    await first.until('first')
    expect(answers).toHaveLength(2)
    for (const answer of answers) answer.end()
  })

  it('with a head that cannot be sent is the fault of the backend, and can still be answered otherwise', async () => {
    const answer = await answerOf((exchange) => {
      const answer = new ClientAnswer(exchange)
      const bad = { 'x-a': 'line\nbreak' }
      expect(() => answer.begin(200, bad)).toThrow(expect.objectContaining({ code: 'backend_protocol', sent: true }))
      expect(() => answer.whole(200, bad, Buffer.from('x'))).toThrow(expect.objectContaining({ code: 'backend_protocol' }))
      expect(answer.begun).toBe(false)
      answer.whole(502, {}, Buffer.from('bad'))
    })
    expect(answer).toMatch(/^HTTP\/1.1 502 /)
  })

  it('that is cut does not look whole', async () => {
    const answer = await answerOf((exchange) => {
      const answer = new ClientAnswer(exchange)
      answer.begin(200, TYPE)
      answer.write(Buffer.from('half'), undefined)
      answer.cut(new Error('gone'))
      answer.end()
    })
    expect(answer).not.toContain('\r\n0\r\n\r\n') // the end of a chunked body
  })

  it('makes the backend wait for a client that does not read, and goes on when the client has gone', async () => {
    const flow = { paused: 0, resumed: 0, pause: () => void flow.paused++, resume: () => void flow.resumed++ }
    let exchange: Exchange | undefined
    await using loopback = await startServer((given) => {
      exchange = given
      const answer = new ClientAnswer(given)
      answer.begin(200, TYPE)
      for (let i = 0; i < 64; i++) answer.write(Buffer.alloc(1 << 20), flow)
    })
    using client = await rawClient(loopback.port, { paused: true })
    client.write(get('/'))
    await eventually(() => flow.paused > 0)
    expect(flow.resumed).toBe(0)
    client.socket.destroy()
    await eventually(() => flow.resumed > 0)
    expect(exchange?.closed).toBe(true)
    const late = new ClientAnswer(exchange as Exchange)
    late.write(Buffer.from('unread'), flow)
    late.end()
    expect(loopback.errors).toEqual([])
  })
})
