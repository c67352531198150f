import { isThvError } from '@thv/kernel/errors'
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import type { HeaderBag } from './header-names.ts'
import type { JsonObject, JsonRpcRequest } from './json-rpc.ts'
import { checkHeaders, expectedHeaders, nameOf } from './modern-headers.ts'
import { errorObjectOf, isRejection } from './wire-errors.ts'

const V = 'io.modelcontextprotocol/protocolVersion'
const CAPS = 'io.modelcontextprotocol/clientCapabilities'
const MODERN = '2026-07-28'
const meta = { [V]: MODERN, [CAPS]: {} }

const request = (method: string, params: JsonObject = {}): JsonRpcRequest => ({
  jsonrpc: '2.0',
  id: 1,
  method,
  params: { _meta: meta, ...params },
})
const call = request('tools/call', { name: 'echo' })
const headers = { 'mcp-protocol-version': MODERN, 'mcp-method': 'tools/call', 'mcp-name': 'echo' }

/** `ok`, or the code of the refusal and the header it speaks of. */
function check(message: JsonRpcRequest, bag: HeaderBag, served?: readonly string[]): string {
  const result = checkHeaders(message, bag, served)
  if (!isRejection(result)) return 'ok'
  const { code, data } = errorObjectOf(result)
  expect(result.httpStatus).toBe(400)
  return `${code} ${(data as { header?: string })?.header ?? ''}`.trim()
}

describe('checkHeaders', () => {
  it('gives the envelope of a good request', () => {
    expect(checkHeaders(call, headers)).toMatchObject({ protocolVersion: MODERN, clientCapabilities: {} })
  })

  it.each<[string, JsonRpcRequest, HeaderBag, string]>([
    ['white space around values', call, { 'mcp-protocol-version': ` ${MODERN}\t`, 'mcp-method': ' tools/call', 'mcp-name': 'echo ' }, 'ok'],
    ['a wrapped name', call, { ...headers, 'mcp-name': '=?base64?ZWNobw==?=' }, 'ok'],
    ['a name where none is needed', request('tools/list'), { ...headers, 'mcp-method': 'tools/list', 'mcp-name': 'any' }, 'ok'],
    ['no name where none is needed', request('tools/list'), { 'mcp-protocol-version': MODERN, 'mcp-method': 'tools/list' }, 'ok'],
    ['no version header', call, { ...headers, 'mcp-protocol-version': undefined }, '-32020 MCP-Protocol-Version'],
    ['another version header', call, { ...headers, 'mcp-protocol-version': '2025-11-25' }, '-32020 MCP-Protocol-Version'],
    ['no method header', call, { ...headers, 'mcp-method': undefined }, '-32020 Mcp-Method'],
    ['another method header', call, { ...headers, 'mcp-method': 'tools/list' }, '-32020 Mcp-Method'],
    ['a method header in capitals', request('tools/list'), { ...headers, 'mcp-method': 'TOOLS/LIST' }, '-32020 Mcp-Method'],
    ['a method header sent twice', call, { ...headers, 'mcp-method': ['tools/call', 'tools/call'] }, '-32020 Mcp-Method'],
    ['no name header', call, { ...headers, 'mcp-name': undefined }, '-32020 Mcp-Name'],
    ['another name header', call, { ...headers, 'mcp-name': 'Echo' }, '-32020 Mcp-Name'],
    ['a malformed name header', call, { ...headers, 'mcp-name': '=?base64?ZWNobw?=' }, '-32020 Mcp-Name'],
    ['a name header for a body without name', request('tools/call'), headers, '-32020 Mcp-Name'],
    ['neither name', request('tools/call'), { ...headers, 'mcp-name': undefined }, '-32020 Mcp-Name'],
    ['a name that is no string', request('tools/call', { name: 7 }), { ...headers, 'mcp-name': '7' }, '-32020 Mcp-Name'],
    [
      'a uri as name',
      request('resources/read', { uri: 'test://é' }),
      { ...headers, 'mcp-method': 'resources/read', 'mcp-name': '=?base64?dGVzdDovL8OpIA==?=' },
      '-32020 Mcp-Name',
    ],
    ['a task as name', request('tasks/get', { taskId: 't1' }), { ...headers, 'mcp-method': 'tasks/get', 'mcp-name': 't1' }, 'ok'],
  ])('%s', (_, message, bag, outcome) => {
    expect(check(message, bag)).toBe(outcome)
  })

  it.each<[string, JsonObject, HeaderBag, string]>([
    ['broken envelope beats all', { _meta: { [V]: 'v999' } }, {}, '-32602'],
    ['missing version header beats unsupported', { _meta: { ...meta, [V]: 'v999' } }, {}, '-32020 MCP-Protocol-Version'],
    [
      'other version header beats unsupported',
      { _meta: { ...meta, [V]: 'v999' } },
      { 'mcp-protocol-version': MODERN },
      '-32020 MCP-Protocol-Version',
    ],
    ['unsupported beats a missing method header', { _meta: { ...meta, [V]: 'v999' } }, { 'mcp-protocol-version': 'v999' }, '-32022'],
    [
      'a legacy version in the envelope is unsupported',
      { _meta: { ...meta, [V]: '2025-11-25' } },
      { 'mcp-protocol-version': '2025-11-25' },
      '-32022',
    ],
    [
      'a legacy version in the envelope, other header',
      { _meta: { ...meta, [V]: '2025-11-25' } },
      { 'mcp-protocol-version': MODERN },
      '-32020 MCP-Protocol-Version',
    ],
    ['a legacy version in the envelope, no header', { _meta: { ...meta, [V]: '2025-11-25' } }, {}, '-32020 MCP-Protocol-Version'],
    ['a missing method header beats a missing name', {}, { 'mcp-protocol-version': MODERN }, '-32020 Mcp-Method'],
    ['a wrong method header beats an unknown method', {}, { 'mcp-protocol-version': MODERN, 'mcp-method': 'x' }, '-32020 Mcp-Method'],
  ])('order: %s', (_, params, bag, outcome) => {
    expect(check(request('tools/call', { name: 'echo', ...params }), bag)).toBe(outcome)
  })

  it('lists what the endpoint serves, and refuses the modern version where it does not serve it', () => {
    expect(check(call, headers, ['2025-11-25'])).toBe('-32022')
    const result = checkHeaders(request('server/discover', { _meta: { ...meta, [V]: 'v9' } }), { 'mcp-protocol-version': 'v9' }, [
      'a',
      MODERN,
    ])
    expect(isRejection(result) && errorObjectOf(result).data).toEqual({ supported: ['a', MODERN], requested: 'v9' })
  })
})

describe('expectedHeaders', () => {
  it.each<[string, JsonObject, string | undefined]>([
    ['tools/call', { name: 'echo' }, 'echo'],
    ['prompts/get', { name: '日本' }, '=?base64?5pel5pys?='],
    ['resources/read', { uri: 'file:///a b' }, 'file:///a b'],
    ['tasks/update', { taskId: 't' }, 't'],
    ['tasks/cancel', { taskId: '' }, '=?base64??='],
    ['tools/list', { name: 'not a name here' }, undefined],
    ['tools/call', {}, undefined],
  ])('%s %j has the name %j', (method, params, name) => {
    expect(expectedHeaders(request(method, params))).toEqual({
      'mcp-protocol-version': MODERN,
      'mcp-method': method,
      ...(name === undefined ? {} : { 'mcp-name': name }),
    })
  })

  it('is what the other side checks', () => {
    const named = fc.constantFrom(['tools/call', 'name'], ['prompts/get', 'name'], ['resources/read', 'uri'], ['tasks/get', 'taskId'])
    fc.assert(
      fc.property(named, fc.string({ unit: 'binary' }), ([method = '', member = ''], name) => {
        const message = request(method, { [member]: name.toWellFormed() })
        expect(nameOf(message)).toBe(name.toWellFormed())
        expect(check(message, expectedHeaders(message))).toBe('ok')
      }),
    )
  })

  it('lets no header be smuggled in by a method', () => {
    for (const method of ['a\r\nx-evil: 1', 'é', 'a b', '']) {
      expect(() => expectedHeaders(request(method))).toSatisfy((run: () => void) => {
        try {
          run()
          return false
        } catch (error) {
          return isThvError(error, 'method_not_found')
        }
      })
    }
  })

  it('wants a stamped message', () => {
    expect(() => expectedHeaders({ jsonrpc: '2.0', id: 1, method: 'tools/list' })).toThrow(RangeError)
  })
})
