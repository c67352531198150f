import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { META } from './envelope.ts'
import { classify } from './era.ts'
import { parseBody, parseText } from './parse-body.ts'
import { LEGACY_VERSIONS } from './versions.ts'
import { answerOf } from './wire-errors.ts'

const V = 'io.modelcontextprotocol/protocolVersion'
const INFO = 'io.modelcontextprotocol/clientInfo'
const CAPS = 'io.modelcontextprotocol/clientCapabilities'
const LEVEL = 'io.modelcontextprotocol/logLevel'
const MODERN = '2026-07-28'

type Row = [rule: string, what: string, input: Input, outcome: string]

interface Input {
  http?: string
  header?: string
  method?: string
  meta?: unknown
  session?: boolean
  /** Instead of a request made of method and meta. */
  body?: string
}

/** `legacy`, `modern`, or the status and code of the refusal; with the version where one is known. */
function outcomeOf({ http = 'POST', header, method = 'tools/list', meta, session = false, body }: Input): [rule: string, outcome: string] {
  const params = meta === undefined ? undefined : { _meta: meta }
  const text = body ?? JSON.stringify({ jsonrpc: '2.0', id: 1, method, params })
  const result = classify({
    httpMethod: http,
    versionHeader: header,
    body: http === 'POST' ? parseText(text) : undefined,
    hasLegacySession: session,
  })
  if (result.era !== 'none') return [result.rule, result.version === undefined ? result.era : `${result.era} ${result.version}`]
  const { status, body: answer } = answerOf(result.rejection)
  return [result.rule, `${status} ${JSON.parse(answer).error.code}`]
}

const notification = (meta?: object) =>
  JSON.stringify({ jsonrpc: '2.0', method: 'notifications/cancelled', ...(meta && { params: { _meta: meta } }) })
const response = '{"jsonrpc":"2.0","id":1,"result":{}}'

const rows: Row[] = [
  ['C1', 'GET', { http: 'GET' }, 'legacy'],
  ['C1', 'GET in a session', { http: 'GET', header: '2025-11-25', session: true }, 'legacy 2025-11-25'],
  ['C1', 'DELETE', { http: 'DELETE', header: '2025-06-18' }, 'legacy 2025-06-18'],
  ['C1', 'GET with the modern header', { http: 'GET', header: MODERN }, '405 405'],
  ['C1', 'DELETE with the modern header', { http: 'DELETE', header: MODERN, session: true }, '405 405'],
  ['C1', 'HEAD with the modern header', { http: 'HEAD', header: MODERN }, '405 405'],
  ['C1', 'HEAD', { http: 'HEAD' }, '405 405'],
  ['C1', 'PUT', { http: 'PUT', session: true }, '405 405'],
  ['C1', 'GET with a header of tomorrow', { http: 'GET', header: '2027-01-01' }, 'legacy'],

  ['C2', 'batch', { body: '[{"jsonrpc":"2.0","id":1,"method":"ping"}]' }, '400 -32600'],
  ['C2', 'batch in a session', { body: '[]', session: true, header: '2025-03-26' }, '400 -32600'],
  [
    'C2',
    'batch with a modern element',
    { body: `[{"jsonrpc":"2.0","id":1,"method":"x","params":{"_meta":{"${V}":"${MODERN}"}}}]` },
    '400 -32600',
  ],
  ['C2', 'not JSON', { body: '{' }, '400 -32700'],
  ['C2', 'no message', { body: '{}', header: MODERN }, '400 -32600'],

  ['C3', 'response in a session', { body: response, session: true }, 'legacy'],
  ['C3', 'response in a session, with header', { body: response, session: true, header: '2025-06-18' }, 'legacy 2025-06-18'],
  ['C3', 'response without session', { body: response }, '400 -32000'],
  ['C3', 'response with the modern header', { body: response, header: MODERN }, '400 -32600'],
  ['C3', 'response with the modern header in a session', { body: response, header: MODERN, session: true }, '400 -32600'],
  ['C3', 'error response in a session', { body: '{"jsonrpc":"2.0","id":1,"error":{"code":-1,"message":"no"}}', session: true }, 'legacy'],

  ['C4', 'notification', { body: notification() }, 'legacy'],
  ['C4', 'notification with a legacy header', { body: notification(), header: '2025-11-25' }, 'legacy 2025-11-25'],
  ['C4', 'notification with an unknown header', { body: notification(), header: 'v9' }, 'legacy'],
  ['C4', 'notification with the modern header', { body: notification(), header: MODERN }, 'modern'],
  ['C4', 'notification with a modern envelope', { body: notification({ [V]: MODERN }) }, 'modern 2026-07-28'],
  ['C4', 'notification with an envelope of tomorrow', { body: notification({ [V]: '2027-01-01' }) }, 'modern 2027-01-01'],
  ['C4', 'notification with an envelope that says legacy', { body: notification({ [V]: '2025-11-25' }) }, 'legacy'],
  ['C4', 'notification with a broken envelope', { body: notification({ [V]: 7 }) }, 'legacy'],
  [
    'C4',
    'notification with a modern envelope and a legacy header',
    { body: notification({ [V]: MODERN }), header: '2025-11-25' },
    'modern 2026-07-28',
  ],

  ['C5', 'modern request', { meta: { [V]: MODERN, [CAPS]: {} }, header: MODERN }, 'modern 2026-07-28'],
  ['C5', 'modern envelope, no header', { meta: { [V]: MODERN } }, 'modern 2026-07-28'],
  ['C5', 'modern envelope, legacy header', { meta: { [V]: MODERN }, header: '2025-11-25' }, 'modern 2026-07-28'],
  ['C5', 'modern envelope in a session', { meta: { [V]: MODERN }, session: true }, 'modern 2026-07-28'],
  ['C5', 'envelope with an unknown version', { meta: { [V]: 'v999.0.0' }, header: MODERN }, 'modern v999.0.0'],
  ['C5', 'envelope with a legacy version', { meta: { [V]: '2025-11-25' }, header: '2025-11-25' }, 'modern 2025-11-25'],
  ['C5', 'initialize with an envelope', { method: 'initialize', meta: { [V]: MODERN, [CAPS]: {} }, header: MODERN }, 'modern 2026-07-28'],
  ['C5', 'ping with an envelope', { method: 'ping', meta: { [V]: MODERN } }, 'modern 2026-07-28'],

  ['C6', 'modern header, no params', { header: MODERN }, '400 -32602'],
  ['C6', 'modern header, _meta not an object', { header: MODERN, meta: 'x' }, '400 -32602'],
  ['C6', 'modern header, half an envelope', { header: MODERN, meta: { [CAPS]: {}, [INFO]: {} } }, '400 -32602'],
  ['C6', 'modern header, no envelope, in a session', { header: MODERN, session: true }, '400 -32602'],

  ['C7', 'version a number', { meta: { [V]: 20260728 } }, '400 -32602'],
  ['C7', 'version null', { meta: { [V]: null } }, '400 -32602'],
  ['C7', 'version empty', { meta: { [V]: '' } }, '400 -32602'],
  ['C7', 'version a list, modern header', { meta: { [V]: [] }, header: MODERN }, '400 -32602'],
  ['C7', 'version a number, unknown header', { meta: { [V]: 1 }, header: 'v9' }, '400 -32602'],
  ['C7', 'version a number, legacy header', { meta: { [V]: 1 }, header: '2025-06-18' }, 'legacy 2025-06-18'],
  ['C7', 'version empty, legacy header', { meta: { [V]: '' }, header: '2025-11-25' }, 'legacy 2025-11-25'],
  ['C7', 'version a number in a session', { meta: { [V]: 1 }, session: true }, '400 -32602'],
  ['C7', 'initialize, version a number', { method: 'initialize', meta: { [V]: 1 } }, '400 -32602'],

  ['C8', 'initialize', { method: 'initialize' }, 'legacy'],
  ['C8', 'initialize with a legacy header', { method: 'initialize', header: '2025-11-25' }, 'legacy 2025-11-25'],
  ['C8', 'initialize with the modern header', { method: 'initialize', header: MODERN }, 'legacy'],
  ['C8', 'initialize with an unknown header', { method: 'initialize', header: 'v9' }, 'legacy'],
  ['C8', 'initialize with a header of tomorrow', { method: 'initialize', header: '2027-01-01' }, 'legacy'],
  ['C8', 'initialize with half an envelope', { method: 'initialize', meta: { [INFO]: {} } }, 'legacy'],

  ...LEGACY_VERSIONS.map((v): Row => ['C9', `header ${v}`, { header: v }, `legacy ${v}`]),
  [
    'C9',
    'legacy header and stray reserved keys',
    { header: '2025-11-25', meta: { [INFO]: {}, [CAPS]: {}, [LEVEL]: 'info' } },
    'legacy 2025-11-25',
  ],
  ['C9', 'legacy header, other _meta', { header: '2025-06-18', meta: { progressToken: 1 } }, 'legacy 2025-06-18'],

  ['C10', 'half an envelope: client info', { meta: { [INFO]: {} } }, '400 -32602'],
  ['C10', 'half an envelope: capabilities', { meta: { [CAPS]: {} } }, '400 -32602'],
  ['C10', 'half an envelope: capabilities null', { meta: { [CAPS]: null } }, '400 -32602'],
  ['C10', 'half an envelope in a session', { meta: { [INFO]: {}, [CAPS]: {} }, session: true }, 'legacy'],

  ['C11', 'nothing at all', {}, 'legacy'],
  ['C11', 'nothing but a session', { session: true }, 'legacy'],
  ['C11', 'only a log level', { meta: { [LEVEL]: 'info' } }, 'legacy'],
  ['C11', 'only keys of others', { meta: { 'com.example/a': 1, progressToken: 1 } }, 'legacy'],
  ['C11', '_meta not an object', { meta: [] }, 'legacy'],

  ['C12', 'header of tomorrow', { header: '2026-07-29' }, '400 -32602'],
  ['C12', 'header unknown', { header: 'v9' }, '400 -32022'],
  ['C12', 'header unknown in a session', { header: 'v9', session: true }, '400 -32022'],
  ['C12', 'header between the revisions', { header: '2026-01-01' }, '400 -32022'],
  ['C12', 'header empty', { header: '' }, '400 -32022'],
  ['C12', 'header twice', { header: '2025-11-25, 2025-11-25' }, '400 -32022'],
  ['C12', 'header unknown, half an envelope', { header: 'v9', meta: { [CAPS]: {} } }, '400 -32022'],
]

describe('classify', () => {
  it.each(rows)('%s: %s', (rule, _what, input, outcome) => {
    expect(outcomeOf(input)).toEqual([rule, outcome])
  })

  it('has a row for every rule', () => {
    expect(new Set(rows.map(([rule]) => rule)).size).toBe(12)
  })

  it('names the missing key, the versions to choose from, and the methods allowed', () => {
    const of = (header: string, httpMethod = 'POST') => {
      const result = classify({
        httpMethod,
        versionHeader: header,
        body: parseText('{"jsonrpc":"2.0","id":1,"method":"x"}'),
        hasLegacySession: false,
        served: ['2025-11-25', MODERN],
      })
      return result.era === 'none' ? answerOf(result.rejection) : undefined
    }
    expect(of(MODERN)?.body).toContain(V)
    expect(of('2027-01-01')?.body).toContain(V)
    expect(JSON.parse(of('v9')?.body ?? '').error.data).toEqual({ supported: ['2025-11-25', MODERN], requested: 'v9' })
    expect(of(MODERN, 'GET')?.headers).toMatchObject({ allow: 'POST' })
    expect(of('2025-11-25', 'PATCH')?.headers).toMatchObject({ allow: 'GET, POST, DELETE' })
  })

  it('answers a POST whose body was not even read', () => {
    expect(classify({ httpMethod: 'POST', versionHeader: undefined, body: undefined, hasLegacySession: true }).era).toBe('none')
  })

  const header = fc.option(fc.oneof(fc.constantFrom(...LEGACY_VERSIONS, MODERN, '2027-01-01', 'v9', ''), fc.string()), { nil: undefined })
  const version = fc.oneof(fc.constantFrom(...LEGACY_VERSIONS, MODERN, 'v9'), fc.string({ minLength: 1 }))

  it('never takes a request that claims a version for a legacy one, whatever its header, method and session', () => {
    fc.assert(
      fc.property(
        header,
        version,
        fc.constantFrom('initialize', 'ping', 'tools/call'),
        fc.boolean(),
        (header, version, method, session) => {
          const [rule] = outcomeOf({
            ...(header === undefined ? {} : { header }),
            method,
            session,
            meta: { [META.protocolVersion]: version },
          })
          expect(rule).toBe('C5')
        },
      ),
    )
  })

  it('decides on any body, and always the same', () => {
    fc.assert(
      fc.property(header, fc.oneof(fc.json(), fc.string()), fc.boolean(), (header, text, session) => {
        const input = { httpMethod: 'POST', versionHeader: header, body: parseBody(Buffer.from(text)), hasLegacySession: session }
        expect(['legacy', 'modern', 'none']).toContain(classify(input).era)
        expect(classify(input)).toEqual(classify(input))
      }),
    )
  })
})
