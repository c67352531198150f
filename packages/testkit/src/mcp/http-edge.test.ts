import { request as httpRequest } from 'node:http'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { type Fixture, startFixture } from './fixture.ts'
import { modernRequest, openLegacy, sendModern, sendRaw } from './testing/raw-client.ts'
import { objectOf, type RpcResponse } from './wire/json-rpc.ts'

/** The order of these checks can be seen from outside; the numbers are spelled out again on purpose. */
describe('the edge of the HTTP fixture', () => {
  let fixture: Fixture
  beforeAll(async () => {
    fixture = await startFixture()
  })
  afterAll(() => fixture.stop())

  const VERSION = 'io.modelcontextprotocol/protocolVersion'
  const CAPABILITIES = 'io.modelcontextprotocol/clientCapabilities'
  const list = { 'mcp-protocol-version': '2026-07-28', 'mcp-method': 'tools/list' }
  const call = { 'mcp-protocol-version': '2026-07-28', 'mcp-method': 'tools/call' }
  const query = (region: unknown) => modernRequest('tools/call', { name: 'region_query', arguments: { region } })

  const MODERN_CASES: [string, unknown, Record<string, string>, number, number][] = [
    ['not JSON', '{', {}, 400, -32700],
    ['a batch', [modernRequest('tools/list')], list, 400, -32600],
    ['an id of null', { ...modernRequest('tools/list'), id: null }, list, 400, -32600],
    ['a response', { jsonrpc: '2.0', id: 1, result: {} }, list, 400, -32600],
    ['no version in the body', { jsonrpc: '2.0', id: 1, method: 'tools/list', params: {} }, list, 400, -32602],
    ['no capabilities', modernRequest('tools/list', {}, { meta: { [CAPABILITIES]: null } }), list, 400, -32602],
    ['a version that is no string', modernRequest('tools/list', {}, { meta: { [VERSION]: 7 } }), {}, 400, -32602],
    [
      'claims without a version',
      { jsonrpc: '2.0', id: 1, method: 'tools/list', params: { _meta: { [CAPABILITIES]: {} } } },
      {},
      400,
      -32602,
    ],
    ['no version header', modernRequest('tools/list'), { 'mcp-method': 'tools/list' }, 400, -32020],
    ['two versions', modernRequest('tools/list', {}, { meta: { [VERSION]: '2099-01-01' } }), list, 400, -32020],
    [
      'an unknown version',
      modernRequest('x', {}, { meta: { [VERSION]: '2099-01-01' } }),
      { 'mcp-protocol-version': '2099-01-01' },
      400,
      -32022,
    ],
    ['no method header', modernRequest('tools/list'), { 'mcp-protocol-version': '2026-07-28' }, 400, -32020],
    ['a method header in the wrong case', modernRequest('tools/list'), { ...list, 'mcp-method': 'TOOLS/LIST' }, 400, -32020],
    ['no name header', modernRequest('tools/call', { name: 'greet' }), call, 400, -32020],
    ['a removed method', modernRequest('ping'), { ...list, 'mcp-method': 'ping' }, 404, -32601],
    ['an enveloped handshake', modernRequest('initialize'), { ...list, 'mcp-method': 'initialize' }, 404, -32601],
    ['an unknown tool', modernRequest('tools/call', { name: 'nope' }), { ...call, 'mcp-name': 'nope' }, 200, -32602],
    ['a missing param header', query('north'), { ...call, 'mcp-name': 'region_query' }, 400, -32020],
    ['a param header without a param', query(null), { ...call, 'mcp-name': 'region_query', 'mcp-param-region': 'north' }, 400, -32020],
    ['lenient base64', query('Hi'), { ...call, 'mcp-name': 'region_query', 'mcp-param-region': '=?base64?SGk?=' }, 400, -32020],
    [
      'a capability that is not declared',
      modernRequest('tools/call', { name: 'test_sampling' }),
      { ...call, 'mcp-name': 'test_sampling' },
      400,
      -32021,
    ],
    ['an unknown legacy version', { jsonrpc: '2.0', id: 1, method: 'tools/list' }, { 'mcp-protocol-version': '1999-01-01' }, 400, -32022],
    ['no session', { jsonrpc: '2.0', id: 1, method: 'tools/list' }, {}, 400, -32000],
    ['an unknown session', { jsonrpc: '2.0', id: 1, method: 'tools/list' }, { 'mcp-session-id': 'gone' }, 404, -32001],
  ]

  it.for(MODERN_CASES)('%s', async ([, body, headers, status, code]) => {
    const answer = await sendRaw(fixture.url, body, { headers })
    expect(answer.status).toBe(status)
    expect(answer.messages).toMatchObject([{ error: { code } }])
  })

  it('says which capability is missing, as an object', async () => {
    const { messages } = await sendModern(fixture.url, 'tools/call', { name: 'test_sampling' })
    expect(messages).toMatchObject([{ error: { data: { requiredCapabilities: { sampling: {} } } } }])
  })

  it('accepts encoded names and params', async () => {
    const wrapped = `=?base64?${Buffer.from('größer').toString('base64')}?=`
    const headers = {
      'mcp-name': '=?base64?cmVnaW9uX3F1ZXJ5?=',
      'mcp-param-region': wrapped,
      'mcp-param-limit': '007',
      'mcp-param-tenant': 'a',
    }
    const args = { region: 'größer', limit: 7, where: { tenant: 'a' }, dry_run: null }
    const { messages } = await sendModern(fixture.url, 'tools/call', { name: 'region_query', arguments: args }, { headers })
    expect(messages).toMatchObject([{ result: { structuredContent: { received: args } } }])
  })

  it('repeats the id of the request with its type', async () => {
    for (const id of ['1', 1, 'ä']) expect((await sendModern(fixture.url, 'server/discover', {}, { id })).messages).toMatchObject([{ id }])
  })

  it('refuses a state that was made for another tool', async () => {
    const meta = { [CAPABILITIES]: { elicitation: {} } }
    const first = await sendModern(fixture.url, 'tools/call', { name: 'test_input_required_result_request_state' }, { meta })
    const requestState = (first.messages[0] as RpcResponse).result?.['requestState']
    const other = { name: 'test_input_required_result_multi_round', requestState }
    expect((await sendModern(fixture.url, 'tools/call', other, { meta })).messages).toMatchObject([{ error: { code: -32602 } }])
  })

  it('wants both media types, JSON, and a body that is not too big', async () => {
    const post = (headers: Record<string, string>) =>
      fetch(fixture.url, { method: 'POST', headers, body: '{}' }).then(({ status }) => status)
    expect(await post({ accept: 'application/json', 'content-type': 'application/json' })).toBe(406)
    expect(await post({ accept: 'application/json, text/event-stream', 'content-type': 'text/plain' })).toBe(415)
    await using small = await startFixture({ maxBodyBytes: 100 })
    expect((await sendModern(small.url, 'tools/call', { name: 'x'.repeat(200) })).status).toBe(413)
  })

  it('refuses names that are not of this machine', async () => {
    for (const headers of [{ host: 'evil.example.com' }, { origin: 'http://evil.example.com' }]) {
      expect(await statusOf(fixture.url, headers)).toBe(403)
    }
    expect(await statusOf(fixture.url, { origin: 'http://localhost:1234' })).not.toBe(403)
  })

  it('has no GET and DELETE in the modern revision, and an end of sessions in the legacy one', async () => {
    const status = async (method: string, headers: Record<string, string>) => (await fetch(fixture.url, { method, headers })).status
    expect(await status('GET', { 'mcp-protocol-version': '2026-07-28' })).toBe(405)
    const send = await openLegacy(fixture.url)
    const [message] = (await send('tools/call', { name: 'who_am_i' })).messages as RpcResponse[]
    const session = String(objectOf(message?.result?.['structuredContent'])['session'])
    expect(await status('DELETE', { 'mcp-session-id': session })).toBe(200)
    expect(await status('DELETE', { 'mcp-session-id': session })).toBe(404)
    expect((await send('ping')).status).toBe(404)
  })
})

/** `fetch` does not let a caller set Host. */
function statusOf(url: string, headers: Record<string, string>): Promise<number | undefined> {
  return new Promise((resolve, reject) => {
    httpRequest(url, { method: 'POST', headers }, (response) => resolve(response.resume().statusCode))
      .once('error', reject)
      .end()
  })
}
