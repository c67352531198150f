import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { parseText } from './parse-body.ts'
import { contradictionOf, type ProbeOutcome, verdictOf } from './probe.ts'

const MODERN = '2026-07-28'
const result = (value: unknown) => parseText(JSON.stringify({ jsonrpc: '2.0', id: 'probe', result: value }))
const error = (code: number, data?: unknown) =>
  parseText(JSON.stringify({ jsonrpc: '2.0', id: 'probe', error: { code, message: 'no', data } }))
const http = (status: number, body?: ReturnType<typeof parseText>): ProbeOutcome => ({ kind: 'http', status, body })
const stdio = (body: ReturnType<typeof parseText>): ProbeOutcome => ({ kind: 'stdio', body })

const legacy = { verdict: 'legacy' }
const modern = { verdict: 'modern' }
const unauthorized = { verdict: 'inconclusive', reason: 'unauthorized' }
const unavailable = { verdict: 'inconclusive', reason: 'unavailable' }
const noCommon = { verdict: 'fail', reason: 'no_common_version' }
const retry = { verdict: 'retry', retryWith: MODERN }

describe('verdictOf', () => {
  it.each<[string, ProbeOutcome, object]>([
    ['discover result with the modern version', http(200, result({ supportedVersions: ['2025-11-25', MODERN] })), modern],
    ['discover result over stdio', stdio(result({ supportedVersions: [MODERN] })), modern],
    ['discover result with legacy versions only', http(200, result({ supportedVersions: ['2025-06-18'] })), legacy],
    ['discover result with newer versions only', http(200, result({ supportedVersions: ['2027-01-01'] })), noCommon],
    ['discover result with no version', http(200, result({ supportedVersions: [] })), noCommon],
    ['discover result with odd versions', http(200, result({ supportedVersions: [MODERN, 7] })), legacy],
    ['-32022 that lists ours', http(400, error(-32022, { supported: [MODERN] })), retry],
    ['-32022 that lists ours, over stdio', stdio(error(-32022, { supported: [MODERN, '2025-11-25'] })), retry],
    ['-32022 with legacy versions', http(400, error(-32022, { supported: ['2025-11-25'] })), legacy],
    ['-32022 without data', http(400, error(-32022)), legacy],
    ['-32022 with odd data', http(400, error(-32022, { supported: MODERN })), legacy],
    ['-32022 with newer versions only', http(400, error(-32022, { supported: ['2027-01-01'] })), noCommon],
    ['-32020', http(400, error(-32020)), modern],
    ['-32021', http(400, error(-32021, { requiredCapabilities: {} })), modern],
    ['-32021 with HTTP 200', http(200, error(-32021)), modern],
    ...[400, 404, 405, 406, 415, 501].map((status): [string, ProbeOutcome, object] => [
      `HTTP ${status} without JSON-RPC`,
      http(status),
      legacy,
    ]),
    ...[-32601, -32602, -32600, -32000, -32001, 0, -32603].map((code): [string, ProbeOutcome, object] => [
      `error ${code}`,
      http(400, error(code)),
      legacy,
    ]),
    ['404 with -32601', http(404, error(-32601)), legacy],
    ['an error in-band', http(200, error(-32601)), legacy],
    ['free text', http(400, parseText('Bad Request: no session')), legacy],
    ['410', http(410), legacy],
    ['200 with another result', http(200, result({ tools: [] })), legacy],
    ['200 with a result that is no object', http(200, result('ok')), legacy],
    ['200 with a page', http(200, parseText('<html>')), legacy],
    ['202', http(202), legacy],
    ['501 with -32020', http(501, error(-32020)), modern],
    ['401', http(401), unauthorized],
    ['401 with a modern error', http(401, error(-32020)), unauthorized],
    ['403', http(403), unauthorized],
    ['407', http(407), unauthorized],
    ['408', http(408), unavailable],
    ['429', http(429), unavailable],
    ['500', http(500), unavailable],
    ['502 with a discover result', http(502, result({ supportedVersions: [MODERN] })), unavailable],
    ['503 with a legacy error', http(503, error(-32601)), unavailable],
    ['504', http(504), unavailable],
    ['a redirect', http(307), unavailable],
    ['no connection', { kind: 'transport_failure' }, unavailable],
    ['stdio: silence', { kind: 'stdio_silence' }, legacy],
    ['stdio: exit', { kind: 'stdio_exit' }, legacy],
    ['stdio: -32601', stdio(error(-32601)), legacy],
    ['stdio: not a response', stdio(parseText('{"jsonrpc":"2.0","method":"n"}')), legacy],
  ])('%s', (_, outcome, verdict) => {
    expect(verdictOf(outcome)).toEqual(verdict)
  })

  it('retries once only', () => {
    expect(verdictOf(http(400, error(-32022, { supported: [MODERN] })), true)).toEqual({ verdict: 'fail', reason: 'version_refused_twice' })
    expect(verdictOf(http(200, result({ supportedVersions: [MODERN] })), true)).toEqual(modern)
  })

  it('has a verdict on anything, and modern only with modern proof', () => {
    fc.assert(
      fc.property(fc.integer({ min: 100, max: 599 }), fc.json(), (status, text) => {
        const { verdict } = verdictOf(http(status, parseText(text)))
        expect(['legacy', 'inconclusive']).toContain(verdict)
      }),
    )
  })
})

describe('contradictionOf', () => {
  const again = { era: undefined, mayRetry: true }
  const doubt = { era: undefined, mayRetry: false }

  it.each<[string, number, ReturnType<typeof parseText> | undefined, object | undefined]>([
    ['a complete result', 200, result({ resultType: 'complete' }), undefined],
    ['a result of another type', 200, result({ resultType: 'input_required' }), undefined],
    ['a result without type', 200, result({ content: [] }), doubt],
    ['a result that is no object', 200, result(null), doubt],
    ['404 without body', 404, undefined, again],
    ['404 of an unknown session', 404, error(-32001), again],
    ['404 of an unknown method', 404, error(-32601), undefined],
    ['400 without body', 400, parseText('no'), again],
    ['400 of a server that wants a session', 400, error(-32000), again],
    ['400 of another that does', 400, error(-32600), again],
    ['400 of a bad envelope', 400, error(-32602), undefined],
    ['400 of a header', 400, error(-32020), undefined],
    ['400 of a capability', 400, error(-32021), undefined],
    ['-32022 that lists ours', 400, error(-32022, { supported: [MODERN] }), undefined],
    ['-32022 that does not', 400, error(-32022, { supported: ['2025-11-25'] }), again],
    ['-32022 without list', 400, error(-32022), again],
    ['an error in-band', 200, error(-32602), undefined],
    ['401', 401, undefined, undefined],
    ['503', 503, undefined, undefined],
  ])('against modern: %s', (_, status, body, expected) => {
    expect(contradictionOf('modern', { method: 'tools/call', status, body })).toEqual(expected)
  })

  it.each<[string, string, number, ReturnType<typeof parseText> | undefined, object | undefined]>([
    ['an ordinary handshake', 'initialize', 200, result({ protocolVersion: '2025-11-25' }), undefined],
    [
      'a handshake that names the modern version',
      'initialize',
      200,
      result({ protocolVersion: MODERN }),
      { era: 'modern', mayRetry: true },
    ],
    ['a handshake refused with 400', 'initialize', 400, undefined, again],
    ['a handshake refused with -32022', 'initialize', 200, error(-32022, { supported: [MODERN] }), again],
    ['a handshake refused with 404', 'initialize', 404, undefined, undefined],
    ['a handshake that fails', 'initialize', 503, undefined, undefined],
    ['a call refused with 400', 'tools/call', 400, error(-32000), undefined],
    ['a call without result type', 'tools/call', 200, result({}), undefined],
  ])('against legacy: %s', (_, method, status, body, expected) => {
    expect(contradictionOf('legacy', { method, status, body })).toEqual(expected)
  })
})
