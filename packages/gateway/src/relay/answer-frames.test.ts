import { describe, expect, it } from 'vitest'
import { editedFrames } from './answer-frames.ts'

const emptied = (text: string): string => {
  const message = JSON.parse(text)
  return message.result === undefined ? text : JSON.stringify({ ...message, result: {} })
}
const edited = (data: string) => editedFrames(Buffer.from(`data: ${data}\n\n`), emptied).toString()

describe('editedFrames', () => {
  it.each([
    ['a response', '{"jsonrpc":"2.0","id":1,"result":{"tools":[]}}'],
    ['a response without an id', '{"jsonrpc":"2.0","id":null,"result":{"tools":[]}}'],
    ['a response that is a call too', '{"jsonrpc":"2.0","method":"x","result":{"tools":[]}}'],
    ['a response that is nested deeply', `{"jsonrpc":"2.0","x":${'['.repeat(200)}${']'.repeat(200)},"result":{"tools":[]}}`],
  ])('edits %s', (_, data) => {
    expect(edited(data)).not.toContain('tools')
  })

  it.each([
    ['a call', '{"jsonrpc":"2.0","method":"x","params":{"result":{"tools":[]}}}'],
    ['an error', '{"jsonrpc":"2.0","id":1,"error":{"code":1,"message":"x"}}'],
    ['no data', ''],
  ])('leaves %s as it is', (_, data) => {
    expect(edited(data)).toBe(`data: ${data}\n\n`)
  })

  it.each([
    ['a batch', ' [{"jsonrpc":"2.0","id":1,"result":{"tools":[]}}]'],
    ['JSON of lenient parsers', '{"jsonrpc":"2.0","id":1,"result":{"tools":[NaN]}}'],
  ])('lets %s not pass', (_, data) => {
    expect(() => edited(data)).toThrow(expect.objectContaining({ code: 'backend_protocol' }))
  })
})
