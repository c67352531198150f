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
