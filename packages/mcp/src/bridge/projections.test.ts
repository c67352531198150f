import { describe, expect, it } from 'vitest'
import { META } from '../envelope.ts'
import { METHODS } from '../methods.ts'
import {
  fillsForms,
  legacyError,
  legacyRefusal,
  legacyResult,
  legacyTool,
  modernError,
  modernResult,
  relayedCapabilities,
} from './projections.ts'

const serverInfo = { name: 'joined', version: '1' }
const STAMPED = { _meta: { [META.serverInfo]: serverInfo } }

describe('results for legacy clients', () => {
  it('hold nothing that only modern clients know, and all that a vendor added', () => {
    const modern = { content: [], resultType: 'complete', ttlMs: 5, cacheScope: 'public', _meta: { [META.serverInfo]: {}, vendor: 1 } }
    expect(legacyResult({ ...modern, more: true })).toEqual({ content: [], more: true, _meta: { vendor: 1 } })
    expect(legacyResult({ content: [], _meta: { [META.serverInfo]: {} } })).toEqual({ content: [] })
  })

  it.each<[unknown, unknown[], object]>([
    [{ a: 1 }, [], { structuredContent: { a: 1 }, content: [] }],
    [[1, 2], [], { structuredContent: { result: [1, 2] }, content: [{ type: 'text', text: '[1,2]' }] }],
    [7, [{ type: 'text', text: 'seven' }], { structuredContent: { result: 7 }, content: [{ type: 'text', text: 'seven' }] }],
  ])('have structured content that is an object: %j', (structuredContent, content, expected) => {
    expect(legacyResult({ structuredContent, content })).toEqual(expected)
  })

  it('match the output schema that was listed, with references that still lead somewhere', () => {
    const schema = { type: 'array', items: { $ref: '#/$defs/a' }, $defs: { a: { type: 'number' } } }
    expect(legacyTool({ name: 'x', outputSchema: schema })['outputSchema']).toEqual({
      type: 'object',
      properties: { result: { ...schema, items: { $ref: '#/properties/result/$defs/a' } } },
      required: ['result'],
    })
    const plain = { name: 'x', outputSchema: { type: 'object' } }
    expect(legacyTool(plain)).toBe(plain)
  })
})

describe('results for modern clients', () => {
  it('say that they are complete, who sends them, and how long they may be kept', () => {
    const of = (method: string, isLegacy: boolean, result: object) => modernResult({ ...result }, { method, serverInfo, isLegacy })
    expect(of(METHODS.toolsCall, true, { content: [], resultType: 'odd' })).toEqual({ content: [], resultType: 'complete', ...STAMPED })
    const cached = { resultType: 'complete', cacheScope: 'private', ...STAMPED }
    expect(of(METHODS.resourcesRead, true, { ttlMs: 9 })).toEqual({ ...cached, ttlMs: 0 })
    expect(of(METHODS.resourcesRead, false, { ttlMs: 9, cacheScope: 'public' })).toEqual({ ...cached, ttlMs: 9 })
    expect(of(METHODS.resourcesRead, false, { resultType: 'input_required' })).toEqual({ resultType: 'input_required', ...STAMPED })
  })
})

describe('errors of the other era', () => {
  it.each<[number, string, object]>([
    [-32602, METHODS.resourcesRead, { code: -32002, data: { uri: 'a' } }],
    [-32602, METHODS.toolsCall, { code: -32602, data: { uri: 'a' } }],
    [-32021, METHODS.toolsCall, { code: -32603, data: { upstreamCode: -32021 } }],
    [-32099, METHODS.promptsGet, { code: -32603, data: { upstreamCode: -32099 } }],
    [-32050, METHODS.promptsGet, { code: -32603, data: { upstreamCode: -32050 } }],
    [1, METHODS.promptsGet, { code: 1, data: { uri: 'a' } }],
  ])('for legacy clients: %i of %s', (code, method, expected) => {
    expect(legacyError({ code, message: 'm', data: { uri: 'a' } }, method)).toEqual({ message: 'm', ...expected })
  })

  it('of tools that are about the modern wire are results for legacy clients, which name the capability', () => {
    const error = { code: -32021, message: 'm', data: { requiredCapabilities: { sampling: {} } } }
    expect(legacyRefusal(error, METHODS.toolsCall)).toMatchObject({
      isError: true,
      content: [{ text: expect.stringContaining('sampling') }],
    })
    expect(legacyRefusal({ code: -32020, message: 'm' }, METHODS.toolsCall)).toMatchObject({ isError: true, content: [{ text: 'm' }] })
    expect(legacyRefusal(error, METHODS.promptsGet)).toBeUndefined()
    expect(legacyRefusal({ ...error, code: -32602 }, METHODS.toolsCall)).toBeUndefined()
  })

  it.each<[number, object]>([
    [-32002, { code: -32602, data: { uri: 'a' } }],
    [-32000, { code: -32603, data: { upstreamCode: -32000 } }],
    [-32019, { code: -32603, data: { upstreamCode: -32019 } }],
    [-32021, { code: -32021, data: { uri: 'a' } }],
    [-32042, { code: -32603, data: { upstreamCode: -32042 } }],
    [-32601, { code: -32601, data: { uri: 'a' } }],
  ])('for modern clients: %i', (code, expected) => {
    expect(modernError({ code, message: 'm', data: { uri: 'a' } })).toEqual({ message: 'm', ...expected })
  })
})

describe('capabilities of clients', () => {
  it('reach a backend only as far as they can be relayed', () => {
    const declared = { sampling: {}, elicitation: { url: {} }, roots: true, extensions: { tasks: {} }, experimental: {} }
    expect(relayedCapabilities(declared)).toEqual({ sampling: {}, elicitation: { url: {} } })
    for (const none of [undefined, null, 'x', []]) expect(relayedCapabilities(none)).toEqual({})
  })

  it('mean forms where they name no mode', () => {
    expect([{}, { form: {} }, { form: {}, url: {} }, { url: {} }].map((elicitation) => fillsForms({ elicitation }))).toEqual([
      true,
      true,
      true,
      false,
    ])
    expect(fillsForms({})).toBe(false)
  })
})
