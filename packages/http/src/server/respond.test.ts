import { describe, expect, it } from 'vitest'
import { get, rawExchange, startServer } from '../testing/loopback.ts'
import type { Exchange } from './exchange.ts'
import { sendBytes, sendEmpty, sendJson, sendMethodNotAllowed, sendProblem, sendText, sendWholeText } from './respond.ts'

async function answerOf(handler: (exchange: Exchange) => void, request = get('/', ['Connection: close'])): Promise<string> {
  await using loopback = await startServer(handler)
  const answer = await rawExchange(loopback.port, request)
  expect(loopback.errors).toEqual([])
  return answer.replace(/Date: [^\r]*\r\n/, '')
}

describe('answers', () => {
  it('JSON with its length in bytes', async () => {
    expect(await answerOf((exchange) => sendJson(exchange, { a: 'é' }))).toBe(
      'HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 10\r\nConnection: close\r\n\r\n{"a":"Ã©"}',
    )
  })

  it('text with status and headers', async () => {
    expect(await answerOf((exchange) => sendText(exchange, 'no', { status: 403, headers: ['X-A', '1', 'X-B', '2'] }))).toBe(
      'HTTP/1.1 403 Forbidden\r\nContent-Type: text/plain; charset=utf-8\r\nContent-Length: 2\r\nX-A: 1\r\nX-B: 2\r\nConnection: close\r\n\r\nno',
    )
  })

  it('bytes', async () => {
    const answer = await answerOf((exchange) => sendBytes(exchange, 200, { type: 'x/y', body: Uint8Array.of(65, 66) }))
    expect(answer).toMatch(/Content-Type: x\/y\r\nContent-Length: 2[\s\S]*AB$/)
  })

  it.each([1, 65_536])('a text whose characters take more than a byte, %i of them', async (times) => {
    const text = 'é'.repeat(times)
    const content = { type: 'x/y', text, headers: ['X-A', '1'] }
    const answer = await answerOf((exchange) => sendWholeText(exchange, 201, content))
    expect(Buffer.from(answer, 'latin1').toString('utf8')).toBe(
      `HTTP/1.1 201 Created\r\nContent-Type: x/y\r\nContent-Length: ${2 * times}\r\nX-A: 1\r\nConnection: close\r\n\r\n${text}`,
    )
  })

  it('a text that is longer than Node should copy', async () => {
    const text = 'é'.repeat(65_537)
    const answer = await answerOf((exchange) => sendWholeText(exchange, 200, { type: 'x/y', text }))
    expect(Buffer.from(answer, 'latin1').toString('utf8')).toMatch(new RegExp(`Content-Length: ${2 * 65_537}\r\n[^]*\r\n\r\né{65537}$`))
  })

  it.each([202, 401])('%i without a body says length 0', async (status) => {
    expect(await answerOf((exchange) => sendEmpty(exchange, status))).toMatch(/Content-Length: 0\r\n[\s\S]*\r\n\r\n$/)
  })

  it.each([204, 304])('%i has no length', async (status) => {
    expect(await answerOf((exchange) => sendEmpty(exchange, status, ['X-A', '1']))).toMatch(/X-A: 1/)
    expect(await answerOf((exchange) => sendEmpty(exchange, status))).not.toMatch(/Content-Length|Transfer-Encoding/)
  })

  it('HEAD gets the length without the body', async () => {
    const answer = await answerOf((exchange) => sendText(exchange, 'body'), 'HEAD / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n')
    expect(answer).toMatch(/Content-Length: 4\r\n[\s\S]*\r\n\r\n$/)
  })

  it('problems name the status, or say better', async () => {
    expect(await answerOf((exchange) => sendProblem(exchange, 404))).toMatch(/^HTTP\/1.1 404 [\s\S]*{"error":"Not Found"}$/)
    expect(await answerOf((exchange) => sendProblem(exchange, 404, { text: 'gone fishing' }))).toContain('{"error":"gone fishing"}')
    expect(await answerOf((exchange) => sendMethodNotAllowed(exchange, 'GET, HEAD'))).toMatch(/^HTTP\/1.1 405 [\s\S]*Allow: GET, HEAD\r\n/)
  })
})
