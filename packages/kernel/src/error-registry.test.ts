import { describe, expect, it } from 'vitest'
import { type ErrorCode, internalErrors, wireErrors } from './error-registry.ts'

const families: Record<string, Record<string, { meaning: string }>> = { wireErrors, internalErrors }
const entries = Object.values(families).flatMap((family) => Object.entries(family))

describe('error registry', () => {
  it('pins what clients see', () => {
    const seen = Object.entries(wireErrors).map(([name, e]) => [name, e.jsonRpcCode, e.httpStatus, e.text])
    expect(seen).toEqual([
      ['parse_error', -32700, 400, 'Parse error'],
      ['invalid_request', -32600, 400, 'Invalid request'],
      ['method_not_found', -32601, 404, 'Method not found'],
      ['invalid_params', -32602, 400, 'Invalid params'],
      ['internal_error', -32603, 200, 'Internal error'],
      ['header_mismatch', -32020, 400, 'Header mismatch'],
      ['missing_client_capability', -32021, 400, 'Missing required client capability'],
      ['unsupported_protocol_version', -32022, 400, 'Unsupported protocol version'],
      ['session_required', -32000, 400, 'Session required'],
      ['session_not_found', -32001, 404, 'Session not found'],
      ['access_denied', 403, 403, 'Unauthorized'],
      ['unauthenticated', 401, 401, 'Authentication required'],
      ['forbidden_host', 4031, 403, 'Host or Origin not allowed'],
      ['insufficient_scope', 4032, 403, 'Insufficient scope'],
      ['login_needed', 4033, 403, 'A login at a provider is needed'],
      ['url_elicitation_required', -32042, 200, 'A login at a provider is needed'],
      ['method_not_allowed', 405, 405, 'HTTP method not allowed'],
      ['not_acceptable', 406, 406, 'Not acceptable'],
      ['body_too_large', 413, 413, 'Body too large'],
      ['unsupported_media_type', 415, 415, 'Unsupported media type'],
      ['rate_limited', 429, 429, 'Rate limit exceeded'],
      ['backend_protocol_error', 502, 502, 'Backend protocol error'],
      ['backend_connection_lost', 5021, 502, 'Connection to the backend lost'],
      ['credentials_refused', 5022, 502, 'Credentials refused'],
      ['backend_unavailable', 503, 503, 'Backend unavailable'],
      ['workflow_interrupted', 5035, 503, 'Composite tool interrupted'],
      ['draining', 5031, 503, 'Shutting down'],
      ['pipeline_full', 5032, 503, 'Too many requests at once on one connection'],
      ['credentials_unavailable', 5034, 503, 'Credentials unavailable'],
      ['identity_provider_unavailable', 5033, 503, 'Identity provider unavailable'],
      ['backend_timeout', 504, 504, 'Backend timeout'],
    ])
  })

  it('has no name twice, and no JSON-RPC code twice', () => {
    const names = entries.map(([name]) => name)
    const numbers = Object.values(wireErrors).map((e) => e.jsonRpcCode)
    expect(new Set(names).size).toBe(names.length)
    expect(new Set(numbers).size).toBe(numbers.length)
  })

  it('gives its codes a type that holds both families and nothing else', () => {
    const codes: ErrorCode[] = ['parse_error', 'timeout']
    // @ts-expect-error not registered
    codes.push('no_such_code')
    expect(codes).toHaveLength(3)
  })

  it.each(entries)('names and explains %s', (name, { meaning }) => {
    expect(name).toMatch(/^[a-z]+(_[a-z]+)*$/)
    expect(meaning).toMatch(/^[A-Z].{30,}\.$/)
  })
})
