import { WireClient } from '@thv/gateway/testing/wire-client'
import { startFixture } from '@thv/testkit/mcp/fixture'
import { describe, expect, it } from 'vitest'
import { json, type ScriptedOptions, startScripted } from '../testing/scripted-backend.ts'
import { startTestVmcp } from '../testing/test-vmcp.ts'

/** A virtual server before a legacy backend, and a client whose session there is open already. */
async function before(call: ScriptedOptions['call'], config: object = {}) {
  const stack = new AsyncDisposableStack()
  const backend = stack.use(await startScripted({ era: 'legacy', call }))
  const aggregation = { conflictResolution: 'prefix' }
  const vmcp = stack.use(await startTestVmcp({ backends: { one: backend.url }, config: { aggregation, ...config } }))
  const client = new WireClient(vmcp.url)
  await client.initialize()
  return { backend, client, [Symbol.asyncDispose]: () => stack.disposeAsync() }
}

const CONTENT = '{"content":[{"type":"text","text":"\\u0061"}],"n":12345678901234567890,"structuredContent":{"z":1,"a":2}}'

describe('a call of a legacy client to a legacy backend', () => {
  it('passes as it is written, both ways, but for ids and the name of the tool', async () => {
    await using calling = await before(({ id }, response) => json(response, `{"result":${CONTENT},"jsonrpc":"2.0","id":${id}}`))
    const { client, backend } = calling
    const text = (id: string) =>
      `{ "method":"tools/call", "id":${id},"jsonrpc":"2.0","params":{"arguments":{"n":98765432109876543210,"id":7},"name":"one_work"}}`
    await client.post(text('1')) // it connects
    const answered = await client.post(text('"ü\\""'))
    expect(answered.text).toBe(`{"result":${CONTENT},"jsonrpc":"2.0","id":"ü\\""}`)
    const [, sent] = backend.calls
    expect(sent?.text).toBe(
      `{ "method":"tools/call", "id":${sent?.id},"jsonrpc":"2.0","params":{"arguments":{"n":98765432109876543210,"id":7},"name":"work"}}`,
    )
  })

  it('is asked for progress under a token of its own, and hears of it on its own stream', async () => {
    await using calling = await before(({ id, params }, response) => {
      const { progressToken } = params['_meta'] as { progressToken?: number }
      const progress = { jsonrpc: '2.0', method: 'notifications/progress', params: { progressToken, progress: 1 } }
      response.writeHead(200, { 'content-type': 'text/event-stream' })
      response.write(`data: ${JSON.stringify(progress)}\n\n`)
      response.end(`data: {"jsonrpc":"2.0","id":${id},"result":${CONTENT}}\n\n`)
    })
    const { client, backend } = calling
    const call = () => client.request('tools/call', { name: 'one_work', _meta: { progressToken: 'mine', other: 1 } })
    await call() // it connects
    const { messages } = await call()
    expect(messages[0]).toMatchObject({ method: 'notifications/progress', params: { progressToken: 'mine', progress: 1 } })
    expect(messages[1]).toMatchObject({ result: { structuredContent: { z: 1, a: 2 } } })
    const [, sent] = backend.calls
    expect(sent?.params['_meta']).toEqual({ progressToken: sent?.id, other: 1 })
  })

  it('goes over HTTP+SSE as a message like all others', async () => {
    await using fixture = await startFixture({ transport: 'sse' })
    const entry = { name: 'one', url: fixture.url, transport: 'sse' }
    await using vmcp = await startTestVmcp({ backends: {}, config: { backends: [entry] } })
    const client = new WireClient(vmcp.url)
    await client.initialize()
    const call = () => client.request('tools/call', { name: 'test_tool_with_progress', arguments: {}, _meta: { progressToken: 'mine' } })
    await call() // it connects
    const { messages } = await call()
    expect(messages[0]).toMatchObject({ method: 'notifications/progress', params: { progressToken: 'mine' } })
    expect(messages.at(-1)).toMatchObject({ result: { content: [{ type: 'text' }] } })
  })

  it.each([
    ['an error', (id: unknown) => `{"jsonrpc":"2.0","id":${id},"error":{"code":-32001,"message":"no"}}`, { error: { code: -32001 } }],
    ['a result that is no object', (id: unknown) => `{"jsonrpc":"2.0","id":${id},"result":[]}`, { error: { data: { backend: 'one' } } }],
    ['the answer to another request', () => '{"jsonrpc":"2.0","id":9999,"result":{}}', { error: { data: { mayHaveRun: true } } }],
    [
      'the id of another request beside its own',
      (id: unknown) => `{"jsonrpc":"2.0","id":${id},"result":{},"id":9999,"more":{}}`,
      { error: { data: { mayHaveRun: true } } },
    ],
    ['members in another order', (id: unknown) => `{"id":${id},"jsonrpc":"2.0","result":{"a":1}}`, { result: { a: 1 } }],
  ])('that is answered with %s is read', async (_name, text, expected) => {
    await using calling = await before(({ id }, response) => json(response, text(id)))
    const { client, backend } = calling
    await client.call('one_work')
    expect((await client.call('one_work')).messages).toMatchObject([expected])
    expect(backend.calls.length).toBe(2)
  })

  it('is read where results have a limit', async () => {
    const config = { operational: { toolResults: { maxBytes: 1_024, onExceed: 'error' } } }
    const large = `{"content":[{"type":"text","text":"${'x'.repeat(5_000)}"}]}`
    await using calling = await before(({ id }, response) => json(response, `{"jsonrpc":"2.0","id":${id},"result":${large}}`), config)
    await calling.client.call('one_work')
    expect((await calling.client.call('one_work')).messages).toMatchObject([{ result: { isError: true } }])
  })
})
