import { expect, it } from 'vitest'
import { NamedHeaders } from './named-headers.ts'

it('gives calls of one tool the same headers, and others what belongs to them', () => {
  const headers = new NamedHeaders({ accept: 'x' })
  const one = headers.of('tools/call', 'one')
  expect(one).toEqual({ accept: 'x', 'mcp-method': 'tools/call', 'mcp-name': 'one' })
  expect(headers.of('tools/call', 'one')).toBe(one)
  expect(headers.of('tools/call', 'zwölf')).toEqual({ accept: 'x', 'mcp-method': 'tools/call', 'mcp-name': '=?base64?enfDtmxm?=' })
  expect(headers.of('prompts/get', 'one')).toEqual({ accept: 'x', 'mcp-method': 'prompts/get', 'mcp-name': 'one' })
  expect(headers.of('completion/complete', undefined)).toEqual({ accept: 'x', 'mcp-method': 'completion/complete' })
})

it('forgets tools when they are too many, and does not keep long names', () => {
  const headers = new NamedHeaders({})
  const first = headers.of('tools/call', 'first')
  const long = 'x'.repeat(129)
  expect(headers.of('tools/call', long)).not.toBe(headers.of('tools/call', long))
  for (let n = 0; n < 1_000; n++) headers.of('tools/call', `tool ${n}`)
  expect(headers.of('tools/call', 'first')).not.toBe(first)
  expect(headers.of('tools/call', 'first')).toEqual(first)
})
