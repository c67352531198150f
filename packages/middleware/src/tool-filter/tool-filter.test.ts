import { parseText } from '@thv/mcp/parse-body'
import { describe, expect, it } from 'vitest'
import { compilePipeline } from '../pipeline/pipeline.ts'
import { testContext } from '../testing/test-context.ts'
import { createToolFilter } from './tool-filter.ts'
import { compileToolNames, type ToolSelection } from './tool-names.ts'

function pipelineOf(selection: Partial<ToolSelection>) {
  return compilePipeline([createToolFilter({ filter: [], overrides: {}, ...selection }, { warn: () => {} })])
}

function listed(selection: Partial<ToolSelection>, tools: string): string {
  const context = testContext({ id: 1, method: 'tools/list' })
  return pipelineOf(selection).responseText(context, `{"jsonrpc":"2.0","id":1,"result":{"tools":${tools},"nextCursor":"c"}}`)
}

/** The name that the backend receives for a call of this name; undefined when the call is rejected. */
async function called(selection: Partial<ToolSelection>, name: unknown): Promise<string | undefined> {
  const context = testContext({ id: 7, method: 'tools/call', params: { name, arguments: { n: 1 } } })
  const refusal = await pipelineOf(selection).message(context)
  if (refusal !== undefined) {
    expect(refusal).toMatchObject({ inBand: true, error: 'invalid_params' })
    return undefined
  }
  const { outgoing } = context
  expect(parseText(outgoing.text)).toEqual(outgoing)
  return outgoing.kind === 'request' ? String(outgoing.message.params?.['name']) : undefined
}

describe('tools/list', () => {
  const TOOLS = '[{"name":"a"},{"name":"b", "inputSchema":{"maximum":18446744073709551615, "x":1.0}},{"name":"c"}]'

  it('keeps only what the filter names, and every letter of what stays', () => {
    expect(listed({ filter: ['b'] }, TOOLS)).toBe(
      '{"jsonrpc":"2.0","id":1,"result":{"tools":[{"name":"b", "inputSchema":{"maximum":18446744073709551615, "x":1.0}}],"nextCursor":"c"}}',
    )
  })

  it('keeps unknown members before and after the list', () => {
    const text =
      '{ "result": {"resultType":"complete","ttlMs":5,"cacheScope":"public", "tools" : [ {"name":"a"} , {"name":"b"} ] , "_meta":{"v":1e2}}, "id":"x","jsonrpc":"2.0"}'
    const context = testContext({ id: 'x', method: 'tools/list' })
    expect(pipelineOf({ filter: ['a'] }).responseText(context, text)).toBe(
      '{ "result": {"resultType":"complete","ttlMs":5,"cacheScope":"public", "tools" : [{"name":"a"}] , "_meta":{"v":1e2}}, "id":"x","jsonrpc":"2.0"}',
    )
  })

  it('gives back the same text when nothing changes', () => {
    const context = testContext({ id: 1, method: 'tools/list' })
    for (const text of [
      '{"jsonrpc":"2.0","id":1,"result":{"tools":[ {"name":"a"} ]}}',
      '{"jsonrpc":"2.0","id":1,"result":{}}',
      '{"jsonrpc":"2.0","id":1,"error":{"code":-32603,"message":"tools"}}',
    ])
      expect(pipelineOf({ filter: ['a'] }).responseText(context, text)).toBe(text)
  })

  it('renames, redescribes and replaces annotations one by one, in place', () => {
    const tools = '[{"name":"a","description":"old","annotations":{"title":"A","readOnlyHint":true},"inputSchema":{"v":1.50}}]'
    const overrides = { a: { name: 'z', description: 'new', annotations: { readOnlyHint: false } } }
    expect(listed({ overrides }, tools)).toContain(
      '[{"name":"z","description":"new","annotations":{"title":"A","readOnlyHint":false},"inputSchema":{"v":1.50}}]',
    )
  })

  it('adds a description and annotations where there are none', () => {
    const overrides = { a: { description: 'new', annotations: { title: 'T' } } }
    const { result } = JSON.parse(listed({ overrides }, '[{"name":"a"}]'))
    expect(result.tools).toEqual([{ name: 'a', description: 'new', annotations: { title: 'T' } }])
  })

  it('filters by the names that clients see', () => {
    const overrides = { a: { name: 'z' } }
    expect(listed({ filter: ['z'], overrides }, TOOLS)).toContain('"tools":[{"name":"z"}]')
    expect(listed({ filter: ['a'], overrides }, TOOLS)).toContain('"tools":[]')
  })

  it('hides what has no name, and a tool whose name another one took over', () => {
    expect(listed({ filter: ['a'] }, '[{"title":"a"},17,null,{"name":5},{"name":"a"}]')).toContain('"tools":[{"name":"a"}]')
    expect(listed({ overrides: { a: { name: 'b' } } }, TOOLS)).toContain('"tools":[{"name":"b"},{"name":"c"}]')
  })

  it('edits a response on a resumed stream by its form', () => {
    const pipeline = pipelineOf({ filter: ['a'] })
    expect(pipeline.editsStrays).toBe(true)
    const text = '{"jsonrpc":"2.0","id":9,"result":{"tools":[{"name":"a"},{"name":"b"}]}}'
    expect(pipeline.strayResponseText(testContext({ id: 9, method: 'ping' }), text)).toBe(
      '{"jsonrpc":"2.0","id":9,"result":{"tools":[{"name":"a"}]}}',
    )
    expect(compilePipeline([]).editsStrays).toBe(false)
  })

  it('edits single items', () => {
    const context = testContext({ id: 1, method: 'tools/list' })
    const pipeline = pipelineOf({ filter: ['a'] })
    const tool = { name: 'a' }
    expect(pipeline.item(context, 'tools/list', tool)).toBe(tool)
    expect(pipeline.item(context, 'tools/list', { name: 'b' })).toBeUndefined()
    expect(pipeline.item(context, 'prompts/list', { name: 'b' })).toEqual({ name: 'b' })
    expect([pipeline.edits('tools/list'), pipeline.edits('prompts/list')]).toEqual([true, false])
  })
})

describe('tools/call', () => {
  it.each([
    ['no filter, no override', {}, 'a', 'a'],
    ['in the filter', { filter: ['a'] }, 'a', 'a'],
    ['not in the filter', { filter: ['b'] }, 'a', undefined],
    ['by its new name', { overrides: { a: { name: 'z' } } }, 'z', 'a'],
    ['by its old name', { overrides: { a: { name: 'z' } } }, 'a', undefined],
    ['by its old name, which the filter names', { filter: ['a'], overrides: { a: { name: 'z' } } }, 'a', undefined],
    ['two that change places', { overrides: { a: { name: 'b' }, b: { name: 'a' } } }, 'b', 'a'],
    ['with a new description only', { overrides: { a: { description: 'x' } } }, 'a', 'a'],
    ['a name that is another tool’s now', { overrides: { a: { name: 'b' } } }, 'b', 'a'],
    ['a name from the prototype', { filter: ['a'] }, 'constructor', undefined],
    ['no name', { filter: ['a'] }, undefined, undefined],
    ['a name that is no text', { filter: ['a'] }, ['a'], undefined],
  ])('%s', async (_, selection: Partial<ToolSelection>, name, expected) => {
    expect(await called(selection, name)).toBe(expected)
  })

  it('as a notification does not get to the server, whatever it names', () => {
    for (const name of ['a', 'b']) {
      const context = testContext({ method: 'tools/call', params: { name } })
      expect(pipelineOf({ filter: ['a'] }).message(context)).toMatchObject({ inBand: true, error: 'invalid_params' })
    }
  })

  it('changes nothing but the name', async () => {
    const text = '{ "jsonrpc":"2.0", "params": {"arguments":{"big":12345678901234567890}, "name" : "z"}, "method":"tools/call","id":1 }'
    const context = testContext(text)
    await pipelineOf({ overrides: { a: { name: 'z' } } }).message(context)
    expect(context.outgoing.text).toBe(text.replace('"z"', '"a"'))
    expect(context.received.text).toBe(text)
  })

  it('lets other messages pass', async () => {
    for (const message of [
      { id: 1, method: 'prompts/get', params: { name: 'x' } },
      { method: 'notifications/cancelled' },
      { id: 1, result: {} },
    ]) {
      const context = testContext(message)
      expect(await pipelineOf({ filter: ['a'] }).message(context)).toBeUndefined()
      expect(context.outgoing).toBe(context.received)
    }
  })
})

describe('the names of a selection', () => {
  it('warns of a filter entry that is only an original name', () => {
    expect(compileToolNames({ filter: ['a', 'b', 'z'], overrides: { a: { name: 'z' } } }).warnings).toEqual([
      "a is the server's own name of a tool that clients see as z",
    ])
  })

  it('refuses two tools of one name', () => {
    expect(() => compileToolNames({ filter: [], overrides: { a: { name: 'z' }, b: { name: 'z' } } })).toThrow(/a and b both become z/)
  })
})
