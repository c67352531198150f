import { describe, expect, it } from 'vitest'
import { plainResultFor } from './plain-result.ts'

const RESULT = '{"content":[{"type":"text","text":"1"}],"n":12345678901234567890}'

describe('a plain result', () => {
  it.each([
    [`{"jsonrpc":"2.0","id":7,"result":${RESULT}}`, `{"jsonrpc":"2.0","id":"a","result":${RESULT}}`],
    [`{"result":${RESULT},"jsonrpc":"2.0","id":7}`, `{"result":${RESULT},"jsonrpc":"2.0","id":"a"}`],
    ['{"result":{},"jsonrpc":"2.0","id":7}', '{"result":{},"jsonrpc":"2.0","id":"a"}'],
  ])('gets another id and stays as it is written otherwise: %s', (text, expected) => {
    expect(plainResultFor('a', { text, from: 7 })).toBe(expected)
  })

  it('may have ids that need quotes and escapes', () => {
    const text = '{"jsonrpc":"2.0","id":"\\"","result":{}}'
    expect(plainResultFor(0, { text, from: '"' })).toBe('{"jsonrpc":"2.0","id":0,"result":{}}')
  })

  it.each([
    ['the id of another request', `{"jsonrpc":"2.0","id":77,"result":${RESULT}}`],
    ['the id of another request at its end', `{"result":${RESULT},"jsonrpc":"2.0","id":17}`],
    ['an id of another type', `{"jsonrpc":"2.0","id":"7","result":${RESULT}}`],
    ['an error', '{"jsonrpc":"2.0","id":7,"error":{"code":-32602,"message":"no"}}'],
    ['a result that is no object', '{"jsonrpc":"2.0","id":7,"result":[{}]}'],
    ['a result that is a text', '{"jsonrpc":"2.0","id":7,"result":"}}"}'],
    ['a second id', `{"jsonrpc":"2.0","id":7,"result":${RESULT},"id":8,"more":{}}`],
    ['a second id before its own', `{"result":${RESULT},"id":8,"more":{},"jsonrpc":"2.0","id":7}`],
    ['a result that does not end', '{"jsonrpc":"2.0","id":7,"result":{"a":{}}'],
    ['another order', `{"id":7,"jsonrpc":"2.0","result":${RESULT}}`],
    ['white space', `{ "jsonrpc":"2.0","id":7,"result":${RESULT}}`],
    ['nothing', ''],
  ])('is not a message with %s', (_name, text) => {
    expect(plainResultFor('a', { text, from: 7 })).toBeUndefined()
  })
})
