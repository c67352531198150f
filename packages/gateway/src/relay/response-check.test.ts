import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { bytesKind, mayHoldRequest, mayHoldResponse, mayHoldResult, responseKind } from './response-check.ts'

describe('responseKind', () => {
  it.each([
    ['{"jsonrpc":"2.0","id":1,"result":{}}', 1, 'ours'],
    ['{"result":{},"jsonrpc":"2.0","id":1}', 1, 'ours'],
    ['{"id": 1, "jsonrpc": "2.0", "error": {"code": -1, "message": ""}}', 1, 'ours'],
    ['{"jsonrpc":"2.0","id":"1","result":{}}', 1, 'foreign'],
    ['{"jsonrpc":"2.0","id":1,"result":{}}', '1', 'foreign'],
    ['{"jsonrpc":"2.0","id":12,"result":{}}', 1, 'foreign'],
    ['{"jsonrpc":"2.0","error":{"code":-32700,"message":"x"}}', 1, 'foreign'],
    ['{"jsonrpc":"2.0","method":"notifications/progress","params":{"id":1,"result":1}}', 1, 'other'],
    ['{"jsonrpc":"2.0","id":1,"method":"ping"}', 1, 'other'],
    ['[{"jsonrpc":"2.0","id":1,"result":{}}]', 1, 'other'],
    ['<html>', 1, 'other'],
    ['', 1, 'other'],
  ])('%s to %j is %s', (text, id, kind) => {
    expect(responseKind(text, id)).toBe(kind)
    expect(bytesKind(Buffer.from(text), id)).toBe(kind)
  })

  it('knows the answer to any id, however it is written', () => {
    const id = fc.oneof(fc.string(), fc.maxSafeInteger())
    fc.assert(
      fc.property(id, fc.jsonValue(), fc.boolean(), (id, value, idFirst) => {
        const message = idFirst ? { jsonrpc: '2.0', id, result: { value } } : { result: { value }, jsonrpc: '2.0', id }
        expect(responseKind(JSON.stringify(message), id)).toBe('ours')
        expect(responseKind(JSON.stringify(message, null, 1), id)).toBe('ours')
        expect(responseKind(JSON.stringify(message), `${id}x`)).toBe('foreign')
        expect(bytesKind(Buffer.from(JSON.stringify(message)), id)).toBe('ours')
        expect(bytesKind(Buffer.from(JSON.stringify(message)), `${id}x`)).toBe('foreign')
      }),
    )
  })
})

describe('the quick looks', () => {
  it('never miss a response or a request', () => {
    expect(mayHoldResponse(Buffer.from('data: {"jsonrpc":"2.0","id":1,"result":{}}'))).toBe(true)
    expect(mayHoldResponse(Buffer.from('data: {"jsonrpc":"2.0","id":1,"error":{}}'))).toBe(true)
    expect(mayHoldResponse(Buffer.from('data: {"jsonrpc":"2.0","method":"x"}'))).toBe(false)
    expect(mayHoldResult(Buffer.from('data: {"jsonrpc":"2.0","id":1,"\\u0072esult":{}}'))).toBe(true)
    expect(mayHoldResult('{"jsonrpc":"2.0","id":1,"error":{}}')).toBe(false)
    expect(mayHoldRequest(Buffer.from('data: {"jsonrpc":"2.0","id":1,"method":"roots/list"}'))).toBe(true)
    expect(mayHoldRequest(Buffer.from('data: {"jsonrpc":"2.0","method":"notifications/progress"}'))).toBe(false)
  })
})
