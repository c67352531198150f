import type { Exchange } from '@thv/http/server/exchange'
import { describe, expect, it } from 'vitest'
import { endpointOf } from './endpoint-url.ts'

const exchange = (prefix?: string) => ({ headers: prefix === undefined ? {} : { 'x-forwarded-prefix': prefix } }) as unknown as Exchange

describe('endpointOf', () => {
  it('names the query alone for a stream opened at the root, whatever is configured', () => {
    const root = { path: '/', headers: { 'x-forwarded-prefix': '/a' } } as unknown as Exchange
    const endpoint = endpointOf(root, 'ID', { endpointPrefix: '/weather', trustProxyHeaders: true })
    expect(endpoint).toBe('?sessionId=ID')
    expect(new URL(endpoint, 'https://mcp.example.com/servers/weather?x=1').href).toBe(
      'https://mcp.example.com/servers/weather?sessionId=ID',
    )
  })

  it.each([
    ['nothing before it', '', false, undefined, '/messages?sessionId=ID'],
    ['the configured prefix', '/weather', false, undefined, '/weather/messages?sessionId=ID'],
    ['the configured one wins', '/weather', true, '/other', '/weather/messages?sessionId=ID'],
    ['a prefix that names the stream', '/weather/sse', false, undefined, '/weather/messages?sessionId=ID'],
    ['a trailing slash', '/a/b/', false, undefined, '/a/b/messages?sessionId=ID'],
    ['a trusted header', '', true, '/team-a/x', '/team-a/x/messages?sessionId=ID'],
    ['a header that is not trusted', '', false, '/team-a', '/messages?sessionId=ID'],
    ['another origin in disguise', '', true, '//evil.example', '/messages?sessionId=ID'],
    ['another origin', '', true, 'https://evil.example', '/messages?sessionId=ID'],
    ['a line end', '', true, '/a\nevent: x', '/messages?sessionId=ID'],
  ])('%s', (_, endpointPrefix, trustProxyHeaders, header, expected) => {
    expect(endpointOf(exchange(header), 'ID', { endpointPrefix, trustProxyHeaders })).toBe(expected)
  })
})
