import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import {
  HOP_KEYS,
  isLogLevel,
  LOG_LEVELS,
  META,
  progressTokenOf,
  readEnvelope,
  stampRequest,
  stampResult,
  stampText,
  stripHopKeys,
  stripParams,
} from './envelope.ts'
import type { JsonObject, JsonRpcRequest } from './json-rpc.ts'
import { type ParsedRequest, parseText } from './parse-body.ts'
import { errorObjectOf, isRejection } from './wire-errors.ts'

const request = (params?: JsonObject): JsonRpcRequest => ({ jsonrpc: '2.0', id: 1, method: 'tools/list', ...(params && { params }) })
const full = {
  'io.modelcontextprotocol/protocolVersion': '2026-07-28',
  'io.modelcontextprotocol/clientCapabilities': { sampling: {} },
  'io.modelcontextprotocol/clientInfo': { name: 'c', version: '1' },
  'io.modelcontextprotocol/logLevel': 'info',
  progressToken: 'p',
}
const stamp = {
  [META.protocolVersion]: '2026-07-28',
  [META.clientCapabilities]: {},
  [META.clientInfo]: { name: 'gateway', version: '0' },
}

function deepFreeze<T>(value: T): T {
  if (typeof value === 'object' && value !== null) Object.values(Object.freeze(value)).forEach(deepFreeze)
  return value
}

describe('reserved keys', () => {
  it('are pinned', () => {
    expect(Object.values(META)).toEqual([
      'io.modelcontextprotocol/protocolVersion',
      'io.modelcontextprotocol/clientCapabilities',
      'io.modelcontextprotocol/clientInfo',
      'io.modelcontextprotocol/logLevel',
      'io.modelcontextprotocol/serverInfo',
      'io.modelcontextprotocol/subscriptionId',
      'io.modelcontextprotocol/related-task',
      'io.modelcontextprotocol/model-immediate-response',
      'progressToken',
      'traceparent',
      'tracestate',
      'baggage',
    ])
    expect(HOP_KEYS).toEqual(Object.values(META).slice(0, 6))
    expect(LOG_LEVELS).toEqual(['debug', 'info', 'notice', 'warning', 'error', 'critical', 'alert', 'emergency'])
    expect([isLogLevel('debug'), isLogLevel('trace'), isLogLevel(undefined)]).toEqual([true, false, false])
  })
})

describe('readEnvelope', () => {
  it('reads all of it', () => {
    expect(readEnvelope(request({ _meta: full }))).toEqual({
      protocolVersion: '2026-07-28',
      clientCapabilities: { sampling: {} },
      clientInfo: { name: 'c', version: '1' },
      logLevel: 'info',
      progressToken: 'p',
    })
  })

  it('needs neither client info nor a level, and takes odd ones as none', () => {
    const meta = { [META.protocolVersion]: 'v', [META.clientCapabilities]: {} }
    const bare = { protocolVersion: 'v', clientCapabilities: {}, clientInfo: undefined, logLevel: undefined, progressToken: undefined }
    expect(readEnvelope(request({ _meta: meta }))).toEqual(bare)
    expect(readEnvelope(request({ _meta: { ...meta, [META.clientInfo]: 'me', progressToken: {} } }))).toEqual(bare)
  })

  it.each<[string, JsonObject | undefined, string]>([
    ['no params', undefined, 'params._meta'],
    ['no _meta', {}, 'params._meta'],
    ['_meta null', { _meta: null }, 'params._meta'],
    ['_meta a list', { _meta: [] }, 'params._meta'],
    ['no version', { _meta: { [META.clientCapabilities]: {} } }, 'io.modelcontextprotocol/protocolVersion'],
    ['version a number', { _meta: { ...full, [META.protocolVersion]: 20260728 } }, 'io.modelcontextprotocol/protocolVersion'],
    ['version empty', { _meta: { ...full, [META.protocolVersion]: '' } }, 'io.modelcontextprotocol/protocolVersion'],
    ['no capabilities', { _meta: { [META.protocolVersion]: 'v' } }, 'io.modelcontextprotocol/clientCapabilities'],
    ['capabilities null', { _meta: { ...full, [META.clientCapabilities]: null } }, 'io.modelcontextprotocol/clientCapabilities'],
    ['capabilities a list', { _meta: { ...full, [META.clientCapabilities]: [] } }, 'io.modelcontextprotocol/clientCapabilities'],
  ])('refuses %s with -32602 at HTTP 400, naming the key', (_, params, key) => {
    const rejection = readEnvelope(request(params))
    if (!isRejection(rejection)) throw new Error('not refused')
    expect(rejection.httpStatus).toBe(400)
    expect(errorObjectOf(rejection)).toEqual({
      code: -32602,
      message: `Invalid params: ${key} is missing or malformed`,
      data: { missing: key },
    })
  })

  it('finds the progress token without demanding one', () => {
    expect([progressTokenOf({ progressToken: 0 }), progressTokenOf({}), progressTokenOf(undefined)]).toEqual([0, undefined, undefined])
  })
})

describe('stripping and stamping', () => {
  const foreign = {
    'com.example/x': { deep: [1] },
    'io.modelcontextprotocol/related-task': { taskId: 't' },
    'io.modelcontextprotocol/model-immediate-response': 'm',
    'io.modelcontextprotocol/of-tomorrow': 1,
    traceparent: '00-a-b-01',
    tracestate: 's',
    baggage: 'b',
    progressToken: 3,
  }

  it('takes off exactly the keys of the hop', () => {
    const hop = Object.fromEntries(HOP_KEYS.map((key) => [key, {}]))
    expect(stripHopKeys({ ...hop, ...foreign })).toEqual(foreign)
    expect(stripHopKeys(foreign)).toBe(foreign)
  })

  it('puts our own on for a modern backend, over whatever the client claimed', () => {
    const message = deepFreeze(request({ name: 'a', _meta: { ...full, ...foreign } }))
    expect(stampRequest(message, { ...stamp, [META.progressToken]: 'ours' })).toEqual(
      request({ name: 'a', _meta: { ...foreign, progressToken: 'ours', ...stamp } }),
    )
    expect(stampRequest(request(), stamp)).toEqual(request({ _meta: stamp }))
    expect(stampRequest(request({ _meta: 'odd' }), stamp)).toEqual(request({ _meta: stamp }))
  })

  it('does the same to the text, which keeps every other letter', () => {
    const text =
      '{ "jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"a", "arguments":{"n":12345678901234567890}, "_meta":{"k":1,"io.modelcontextprotocol/logLevel":"debug"}}}'
    const stamped = stampText(parseText(text) as ParsedRequest, stamp)
    expect(stamped).toBe(text.replace(/\{"k".*?\}/, JSON.stringify({ k: 1, ...stamp })))
    const bare = parseText('{"jsonrpc":"2.0","id":1,"method":"tools/list"}') as ParsedRequest
    expect(JSON.parse(stampText(bare, stamp))).toEqual(stampRequest(bare.message, stamp))
  })

  it('agrees with itself on any message, and never changes what it is given', () => {
    const meta = fc.dictionary(fc.oneof(fc.constantFrom(...HOP_KEYS, 'progressToken', '__proto__'), fc.string()), fc.jsonValue())
    fc.assert(
      fc.property(fc.dictionary(fc.string(), fc.jsonValue()), fc.option(meta, { nil: undefined }), (rest, meta) => {
        const text = JSON.stringify(request(meta === undefined ? rest : { ...rest, _meta: meta }))
        const parsed = parseText(text) as ParsedRequest
        deepFreeze(parsed.message)
        const stamped = stampRequest(parsed.message, stamp)
        expect(JSON.parse(stampText(parsed, stamp))).toEqual(JSON.parse(JSON.stringify(stamped)))
        expect(isRejection(readEnvelope(stamped))).toBe(false)
        expect(Object.getPrototypeOf(stamped.params?.['_meta'])).toBe(Object.prototype)
      }),
    )
  })

  it('leaves nothing of the envelope for a legacy backend', () => {
    expect(stripParams(deepFreeze({ name: 'a', _meta: full }))).toEqual({ name: 'a', _meta: { progressToken: 'p' } })
    expect(stripParams({ name: 'a', _meta: { [META.protocolVersion]: 'v' } })).toEqual({ name: 'a' })
    for (const params of [{ name: 'a' }, { _meta: {} }, { _meta: foreign }, { _meta: null }]) expect(stripParams(params)).toBe(params)
  })

  it('puts our name under a result', () => {
    const result = deepFreeze({ resultType: 'complete', _meta: { [META.serverInfo]: { name: 'backend' }, [META.subscriptionId]: 4, x: 1 } })
    expect(stampResult(result, { name: 'us' })).toEqual({ resultType: 'complete', _meta: { x: 1, [META.serverInfo]: { name: 'us' } } })
    expect(stampResult({}, { name: 'us' })).toEqual({ _meta: { [META.serverInfo]: { name: 'us' } } })
  })
})
