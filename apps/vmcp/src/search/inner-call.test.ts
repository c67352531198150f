import { parseText } from '@thv/mcp/parse-body'
import { isRejection } from '@thv/mcp/wire-errors'
import { describe, expect, it } from 'vitest'
import { innerCall } from './inner-call.ts'

function read(text: string) {
  const body = parseText(text)
  if (body.kind === 'invalid') throw new Error(body.detail)
  return innerCall(body)
}

const call = (args: string, more = '') =>
  `{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"name":"call_tool","arguments":${args}${more}}}`

describe('a call through call_tool', () => {
  it.each([
    ['as the schema says', '{"tool_name":"a_b","parameters":{"n":12345678901234567890}}', '{"n":12345678901234567890}'],
    ['without parameters', '{"tool_name":"a_b"}', '{}'],
    ['with the name among the parameters', '{"parameters":{"tool_name":"a_b","n":1.0}}', '{"n":1.0}'],
    ['with an argument of the tool that is named tool_name', '{"tool_name":"a_b","parameters":{"tool_name":1}}', '{"tool_name":1}'],
  ])('is the call of the tool, %s', (_, args, expected) => {
    const inner = read(call(args, ',"_meta":{"progressToken":1},"requestState":"s"'))
    if (inner === undefined || isRejection(inner)) throw new Error('not a call')
    expect(inner).toMatchObject({ id: 7, method: 'tools/call' })
    expect(inner.text).toContain(`"arguments":${expected}`)
    expect(JSON.parse(inner.text)).toEqual(inner.message)
    expect(inner.message.params).toMatchObject({ name: 'a_b', _meta: { progressToken: 1 }, requestState: 's' })
  })

  it.each(['null', '[]', '{}', '{"tool_name":1}', '{"tool_name":"a","parameters":[]}', '{"tool_name":"call_tool"}', '{"parameters":"x"}'])(
    'is rejected in-band: %s',
    (args) => {
      expect(read(call(args))).toMatchObject({ error: 'invalid_params', inBand: true })
    },
  )

  it.each([
    '{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"other","arguments":{"tool_name":"a"}}}',
    '{"jsonrpc":"2.0","id":1,"method":"prompts/get","params":{"name":"call_tool"}}',
    '{"jsonrpc":"2.0","method":"tools/call","params":{"name":"call_tool","arguments":{"tool_name":"a"}}}',
    '{"jsonrpc":"2.0","id":1,"result":{}}',
  ])('is no other message: %s', (text) => {
    expect(read(text)).toBeUndefined()
  })
})
