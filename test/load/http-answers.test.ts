import { describe, expect, it } from 'vitest'
import { parseAnswers } from './http-answers.ts'

const parse = (text: string, isHead = false) => parseAnswers(Buffer.from(text, 'latin1'), isHead)
const brief = (text: string, isHead = false) =>
  parse(text, isHead).answers.map(({ status, body, complete }) => [status, body.toString(), complete])

describe('parseAnswers', () => {
  it('reads answers in a row, with length and in chunks, and skips 100 Continue', () => {
    const wire =
      'HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nab' +
      'HTTP/1.1 404 No\r\nTransfer-Encoding: chunked\r\n\r\n2\r\ncd\r\n1\r\ne\r\n0\r\n\r\nHTTP/1.1 204 None\r\n\r\n'
    expect(brief(wire)).toEqual([
      [200, 'ab', true],
      [404, 'cde', true],
      [204, '', true],
    ])
  })

  it.each([
    ['HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nab', [[200, 'ab', false]]],
    ['HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nab', [[200, '', false]]],
    ['HTTP/1.1 20', []],
  ])('tells that an answer is not complete: %j', (wire, expected) => {
    expect(brief(wire)).toEqual(expected)
    expect(parse(wire).garbage).toBeUndefined()
  })

  it('knows that answers to HEAD have a length and no body', () => {
    expect(brief('HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\n', true)).toHaveLength(2)
  })

  it('finds bytes between answers', () => {
    const { answers, garbage } = parse('HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nabcdHTTP/1.1 200 OK\r\n\r\n')
    expect(answers).toHaveLength(1)
    expect(garbage).toContain('cdHTTP/1.1')
  })
})
