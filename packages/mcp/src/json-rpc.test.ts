import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { errorResponse, isErrorResponse, isRequestId, type RequestId, resultResponse, serialise, spliceId, withId } from './json-rpc.ts'
import { parseBody, parseText } from './parse-body.ts'

const id: fc.Arbitrary<RequestId> = fc.oneof(fc.string({ unit: 'binary' }), fc.maxSafeInteger())

describe('responses', () => {
  it('repeat the id, or have none at all', () => {
    expect(serialise(resultResponse(1, {}))).toBe('{"jsonrpc":"2.0","id":1,"result":{}}')
    expect(serialise(errorResponse('a', { code: -32601, message: 'no' }))).toBe(
      '{"jsonrpc":"2.0","id":"a","error":{"code":-32601,"message":"no"}}',
    )
    expect(serialise(errorResponse(undefined, { code: -32700, message: 'no', data: { x: 1 } }))).toBe(
      '{"jsonrpc":"2.0","error":{"code":-32700,"message":"no","data":{"x":1}}}',
    )
    expect(serialise(errorResponse(0, { code: 1, message: '' }))).toContain('"id":0')
    expect(serialise(errorResponse('', { code: 1, message: '' }))).toContain('"id":""')
  })

  it('are distinguished', () => {
    expect(isErrorResponse(resultResponse(1, {}))).toBe(false)
    expect(isErrorResponse(errorResponse(1, { code: 1, message: '' }))).toBe(true)
  })
})

describe('serialise', () => {
  it('comes back from UTF-8 as it went, in one line', () => {
    fc.assert(
      fc.property(id, fc.jsonValue({ stringUnit: 'binary' }), (id, result) => {
        const text = serialise(resultResponse(id, result))
        expect(text).not.toMatch(/[\r\n]/)
        const back = parseBody(Buffer.from(text, 'utf8'))
        expect(back).toMatchObject({ kind: 'response' })
        expect(back.id).toBe(Object.is(id, -0) ? 0 : id)
        if (back.kind !== 'invalid') expect(serialise(back.message)).toBe(text)
      }),
    )
  })

  it('leaves characters as they are: spaces, joiners, emoji, controls', () => {
    const text = '\u00a0\u200d👩‍👩‍👧\ufeff\ufffd\u2028é'
    expect(serialise(resultResponse(1, text))).toBe(`{"jsonrpc":"2.0","id":1,"result":"${text}"}`)
    expect(Buffer.from(serialise(resultResponse(1, '\ud800'))).toString()).toContain('\\ud800')
  })
})

describe('spliceId and withId', () => {
  it('change the id and nothing else', () => {
    fc.assert(
      fc.property(id, id, fc.jsonValue(), (from, to, result) => {
        const text = serialise(resultResponse(from, result))
        expect(spliceId(text, to)).toBe(serialise(resultResponse(to, result)))
      }),
    )
    expect(spliceId('{"jsonrpc":"2.0", "result":{"n":12345678901234567890,"id":1}, "id": 1}', 'x')).toBe(
      '{"jsonrpc":"2.0", "result":{"n":12345678901234567890,"id":1}, "id": "x"}',
    )
  })

  it('add one where it was left out', () => {
    expect(parseText(spliceId('{"jsonrpc":"2.0","error":{"code":1,"message":""}}', 3))).toMatchObject({ kind: 'response', id: 3 })
  })

  it('share the members but not the message', () => {
    const original = Object.freeze({ jsonrpc: '2.0', id: 1, method: 'x', params: { a: 1 } } as const)
    const copy = withId(original, 'two')
    expect(copy).toEqual({ jsonrpc: '2.0', id: 'two', method: 'x', params: { a: 1 } })
    expect(copy.params).toBe(original.params)
    expect(original.id).toBe(1)
  })
})

describe('isRequestId', () => {
  it.each([
    ['', true],
    ['x', true],
    [0, true],
    [-5, true],
    [1.5, false],
    [2 ** 53, false],
    [Number.NaN, false],
    [null, false],
    [undefined, false],
    [{}, false],
  ])('%j: %s', (value, expected) => {
    expect(isRequestId(value)).toBe(expected)
  })
})
