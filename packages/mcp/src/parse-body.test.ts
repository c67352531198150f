import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { DEFAULT_PARSE_LIMITS, echoId, type ParsedBody, parseBody, parseText } from './parse-body.ts'

const parse = (text: string): ParsedBody => parseBody(Buffer.from(text))
const call = (members: string): ParsedBody => parse(`{"jsonrpc":"2.0",${members}}`)

describe('parseBody takes', () => {
  it('a request', () => {
    const text = '{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"name":"é→😀"}}'
    expect(parse(text)).toEqual({ kind: 'request', id: 7, method: 'tools/call', text, message: JSON.parse(text) })
  })

  it('a notification', () => {
    expect(call('"method":"notifications/initialized"')).toMatchObject({ kind: 'notification', method: 'notifications/initialized' })
    expect(call('"method":"x"').id).toBeUndefined()
  })

  it.each([
    ['"id":1,"result":{}', 1],
    ['"id":"a","result":{"x":1}', 'a'],
    ['"id":1,"result":null', 1],
    ['"id":1,"result":{},"error":null', 1],
    ['"id":1,"error":{"code":-32601,"message":"no"}', 1],
    ['"id":1,"result":null,"error":{"code":-32601,"message":"no"}', 1],
    ['"error":{"code":-32700,"message":"no"}', undefined],
    ['"id":null,"error":{"code":-32700,"message":"no"}', undefined],
  ])('a response {%s} with id %j', (members, id) => {
    const body = call(members)
    expect(body).toMatchObject({ kind: 'response' })
    expect(body.id).toBe(id)
  })

  it.each(['0', '-1', '9007199254740991', '1.0', '1e2', '""', '"x"', '"\\ud800"'])('id %s', (id) => {
    expect(call(`"id":${id},"method":"ping"`)).toMatchObject({ kind: 'request', id: JSON.parse(id) })
  })

  it('white space around, and unknown members', () => {
    expect(parse('\r\n\t {"jsonrpc":"2.0","method":"x","extra":[{"a":1}],"params":{}}\n')).toMatchObject({ kind: 'notification' })
  })

  it('any member name without harm', () => {
    const body = call(
      '"id":1,"method":"x","__proto__":{"kind":"evil"},"params":{"__proto__":{"polluted":1},"constructor":{"prototype":{"polluted":1}}}',
    )
    expect(body.kind).toBe('request')
    expect(({} as Record<string, unknown>)['polluted']).toBeUndefined()
    expect(Object.hasOwn(JSON.parse((body as { text: string }).text).params, '__proto__')).toBe(true)
    expect(parse('{"__proto__":{"jsonrpc":"2.0","method":"x"}}')).toMatchObject({ kind: 'invalid' })
  })
})

describe('parseBody refuses', () => {
  it.each([
    ['', 'not_json'],
    [' \n\t', 'not_json'],
    ['{', 'not_json'],
    ['{"jsonrpc":"2.0","id":1,"method":"x"} {}', 'not_json'],
    ["{'jsonrpc':'2.0'}", 'not_json'],
    ['hello', 'not_json'],
    ['\ufeff{"jsonrpc":"2.0","id":1,"method":"x"}', 'not_json'],
    ['{"a":NaN}', 'not_json'],
    ['"text"', 'not_json_rpc'],
    ['1', 'not_json_rpc'],
    ['null', 'not_json_rpc'],
    ['true', 'not_json_rpc'],
    ['{}', 'not_json_rpc'],
  ])('%j as %s', (text, reason) => {
    const body = parse(text)
    expect(body).toMatchObject({ kind: 'invalid', reason, error: reason === 'not_json' ? 'parse_error' : 'invalid_request' })
    expect(body.id).toBeUndefined()
  })

  it.each(['[]', ' \n[{"jsonrpc":"2.0","id":1,"method":"x"}]', '[', '\u00a0[1]', '\ufeff[1]', '\u2003\u3000 [', '\v\f[', '[['])(
    'the batch %j before it is parsed',
    (text) => {
      expect(parse(text)).toEqual({
        kind: 'invalid',
        error: 'invalid_request',
        reason: 'batch',
        detail: 'batches are not accepted',
        id: undefined,
        method: undefined,
      })
    },
  )

  it.each([
    ['"id":null,"method":"x"', undefined],
    ['"id":1.5,"method":"x"', undefined],
    ['"id":9007199254740992,"method":"x"', undefined],
    ['"id":1e400,"method":"x"', undefined],
    ['"id":true,"method":"x"', undefined],
    ['"id":{},"method":"x"', undefined],
    ['"id":[1],"method":"x"', undefined],
    ['"id":1,"method":""', 1],
    ['"id":1,"method":7', 1],
    ['"id":1,"method":null', 1],
    ['"id":"a","method":"x","params":[1]', 'a'],
    ['"id":"a","method":"x","params":null', 'a'],
    ['"id":"a","method":"x","params":"p"', 'a'],
    ['"method":"x","params":[]', undefined],
    ['"id":1,"method":"x","result":{}', 1],
    ['"id":1,"method":"x","error":{"code":1,"message":""}', 1],
    ['"id":1', 1],
    ['"result":{}', undefined],
    ['"id":null,"result":{}', undefined],
    ['"id":1,"result":{},"error":{"code":1,"message":""}', 1],
    ['"id":1,"error":"text"', 1],
    ['"id":1,"error":{"code":"1","message":""}', 1],
    ['"id":1,"error":{"code":1}', 1],
    ['"id":[],"error":{"code":1,"message":""}', undefined],
  ])('the shape {%s}, repeating id %j', (members, id) => {
    const body = call(members)
    expect(body).toMatchObject({ kind: 'invalid', error: 'invalid_request', reason: 'not_json_rpc' })
    expect(body.id).toBe(id)
  })

  it.each(['"1.0"', '2', '2.0', 'null', '["2.0"]'])('jsonrpc %s', (version) => {
    expect(parse(`{"jsonrpc":${version},"id":3,"method":"x"}`)).toMatchObject({ kind: 'invalid', error: 'invalid_request', id: 3 })
  })

  it.each([
    '"id":1,"method":"tools/list","method":"tools/call"',
    '"id":1,"id":2,"method":"x"',
    '"id":1,"method":"x","params":{},"params":{}',
    '"id":1,"method":"x","params":{"name":"a","name":"b"}',
    '"id":1,"method":"x","params":{"arguments":{"path":"/a","path":"/b"}}',
    '"id":1,"method":"x","params":{"_meta":{"k":1,"\\u006b":2}}',
  ])('repeated names {%s}, without choosing an id', (members) => {
    const body = call(members)
    expect(body).toMatchObject({ kind: 'invalid', error: 'invalid_request', detail: 'a member name is repeated' })
    expect(body.id).toBeUndefined()
  })

  it.each([
    '"id":1,"method":"ping","Method":"tools/call"',
    '"id":1,"result":null,"METHOD":"tools/call","Params":{"name":"x"}',
    '"id":1,"method":"ping","param\u017f":{}',
    '"method":"notifications/initialized","ID":1',
    '"id":1,"method":"tools/call","params":{"name":"a","Name":"b"}',
    '"id":1,"method":"tools/call","params":{"name":"a","Arguments":{}}',
    '"id":1,"method":"resources/read","params":{"uri":"a:1","URI":"a:2"}',
  ])('names that some parsers take for others {%s}', (members) => {
    expect(call(members)).toMatchObject({ kind: 'invalid', error: 'invalid_request', detail: expect.stringContaining('only in case') })
  })

  it('rejects invalid UTF-8, and is not confused by it afterwards', () => {
    const good = Buffer.from('{"jsonrpc":"2.0","id":1,"method":"é"}')
    for (const bad of [[0xff], [0xc3], [0xc0, 0xaf], [0xed, 0xa0, 0x80], [0xf4, 0x90, 0x80, 0x80], [0xe2, 0x82]]) {
      const body = parseBody(Buffer.concat([Buffer.from('{"jsonrpc":"2.0","id":1,"method":"'), Buffer.from(bad), Buffer.from('"}')]))
      expect(body).toMatchObject({ kind: 'invalid', error: 'parse_error', reason: 'not_utf8' })
      expect(parseBody(Buffer.from(bad))).toMatchObject({ kind: 'invalid', error: 'parse_error' })
      expect(parseBody(good)).toMatchObject({ kind: 'request', method: 'é' })
    }
  })

  it('nesting over the limit, exactly', () => {
    const nested = (levels: number) => `{"jsonrpc":"2.0","id":1,"method":"x","params":${'{"a":'.repeat(levels)}1${'}'.repeat(levels)}}`
    expect(parse(nested(127)).kind).toBe('request')
    expect(parse(nested(128))).toMatchObject({ kind: 'invalid', error: 'invalid_request', reason: 'too_deep' })
    expect(parse(nested(1_000_000))).toMatchObject({ reason: 'too_deep' })
    expect(parse(`{"a":${'['.repeat(1_000_000)}`)).toMatchObject({ reason: 'too_deep' })
    expect(parseText(nested(3), 3)).toMatchObject({ reason: 'too_deep' })
    expect(parse(`{"jsonrpc":"2.0","id":1,"method":"${'{['.repeat(500)}"}`).kind).toBe('request')
  })

  it('bodies over the limit, exactly', () => {
    const bytes = Buffer.from('{"jsonrpc":"2.0","id":1,"method":"x"}')
    expect(parseBody(bytes, { maxDepth: 9, maxBytes: bytes.length }).kind).toBe('request')
    expect(parseBody(bytes, { maxDepth: 9, maxBytes: bytes.length - 1 })).toMatchObject({ error: 'body_too_large', reason: 'too_large' })
    expect(DEFAULT_PARSE_LIMITS).toEqual({ maxBytes: 8 * 1024 * 1024, maxDepth: 128 })
  })
})

describe('parseBody under fire', () => {
  const sane = (body: ParsedBody) => {
    expect(['invalid', 'request', 'notification', 'response']).toContain(body.kind)
    if (body.kind === 'invalid') return
    expect(body.message.jsonrpc).toBe('2.0')
    expect(body.message).toEqual(JSON.parse(body.text))
    if (body.kind !== 'response') expect(body.method).not.toBe('')
    if (body.kind !== 'notification') expect(['string', 'number', 'undefined']).toContain(typeof body.id)
  }

  it('takes any bytes without a throw', () => {
    fc.assert(fc.property(fc.uint8Array({ maxLength: 200 }), (bytes) => sane(parseBody(bytes))))
  })

  it('takes any JSON without a throw', () => {
    fc.assert(fc.property(fc.json(), (text) => sane(parse(text))))
  })

  it('takes truncated and damaged messages without a throw', () => {
    const whole = Buffer.from(
      '{"jsonrpc":"2.0","id":"é","method":"tools/call","params":{"name":"a","arguments":{"x":[1,{"y":"\\"\\\\"}]},"_meta":{"k":1e9}}}',
    )
    for (let length = 0; length < whole.length; length++) expect(parseBody(whole.subarray(0, length)).kind).toBe('invalid')
    fc.assert(
      fc.property(fc.nat(whole.length - 1), fc.integer({ min: 0, max: 255 }), (at, byte) => {
        const damaged = Buffer.from(whole)
        damaged[at] = byte
        sane(parseBody(damaged))
      }),
    )
  })

  it('finds a repeated name wherever a policy looks, and only then', () => {
    const name = fc.constantFrom('a', 'b', 'c', '__proto__', 'jsonrpc', 'id')
    const scalars = fc.array(fc.tuple(name, fc.constantFrom('1', '"s"', '[{"a":1,"a":2}]', 'null')), { maxLength: 4 })
    const write = (members: [string, string][]) => `{${members.map(([k, v]) => `${JSON.stringify(k)}:${v}`).join(',')}}`
    const repeats = (members: [string, string][]) => new Set(members.map(([k]) => k)).size !== members.length
    fc.assert(
      fc.property(scalars, scalars, (args, params) => {
        const outer: [string, string][] = [...params, ['arguments', write(args)]]
        const body = call(`"id":1,"method":"x","params":${write(outer)}`)
        // The array at depth 3 holds an object at depth 4: not looked at.
        expect(body.kind).toBe(repeats(args) || repeats(params) ? 'invalid' : 'request')
      }),
    )
  })
})

describe('echoId', () => {
  it('is the id of requests and of what might have been one', () => {
    expect(echoId(call('"id":5,"method":"x"'))).toBe(5)
    expect(echoId(call('"id":5,"method":""'))).toBe(5)
    expect(echoId(call('"id":5,"result":{}'))).toBeUndefined()
    expect(echoId(call('"method":"x"'))).toBeUndefined()
    expect(echoId(parse('['))).toBeUndefined()
  })
})
