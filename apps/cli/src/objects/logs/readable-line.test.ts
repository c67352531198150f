import { describe, expect, it } from 'vitest'
import { readableLine } from './readable-line.ts'

const rpc = (message: object) => JSON.stringify({ jsonrpc: '2.0', ...message })

describe('readableLine', () => {
  it.each([
    [rpc({ id: 1, result: { serverInfo: { name: 'x' }, protocolVersion: '2025-11-25' } }), '← initialize  ✓'],
    [rpc({ id: 'a.2', result: { tools: [{ name: 'echo' }] } }), '← tools/list  ✓'],
    [rpc({ id: 3, result: { content: [{ type: 'text', text: 'secret' }] } }), '← tools/call  ✓'],
    [rpc({ id: 3, result: { content: [{ type: 'text', text: 'secret' }], isError: true } }), '← tools/call  ✗ tool error'],
    [rpc({ id: 4, result: {} }), '← response  ✓'],
    [rpc({ id: 5, error: { code: -32602, message: 'secret is no number' } }), '← response  ✗ error -32602 (invalid params)'],
    [rpc({ id: 5, error: { code: 7, message: 'secret' } }), '← response  ✗ error 7'],
    [rpc({ method: 'notifications/message', params: { level: 'warning', data: 'secret' } }), '← notifications/message warning'],
    [rpc({ method: 'sampling/createMessage', id: 0, params: { messages: ['secret'] } }), '← sampling/createMessage'],
    [`[${rpc({ id: 1, result: {} })},${rpc({ method: 'a' })}]`, '← response  ✓, ← a'],
    [rpc({ method: 'a\u001b[31m\nb' }), '← a [31m b'],
    ['{"time":"2026-01-01","level":"warn","msg":"slow","ms":3,"what":"a b"}', 'WARN  slow ms=3 what="a b"'],
    ['{"level":30,"msg":"pino","pid":1}', 'INFO  pino pid=1'],
    ['{"severity":"ERROR","message":"bad\\nthing"}', 'ERROR bad thing'],
    ['{"some":"object"}', '{"some":"object"}'],
    ['{half', '{half'],
    ['plain\ttext \u001b[31mred\u001b[0m\u0007\u202e', 'plain\ttext red'],
    [`{"result":${'x'.repeat(2 << 20)}…`, '(a message of more than 2 MiB)'],
  ])('%s', (line, expected) => {
    expect(readableLine(line)).toBe(expected)
  })
})
