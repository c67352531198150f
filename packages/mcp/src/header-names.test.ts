import { describe, expect, it } from 'vitest'
import { HEADER_TITLES, HEADERS, headerValue, LEGACY_ONLY_HEADERS, trimOws } from './header-names.ts'

describe('header names', () => {
  it('pins them', () => {
    expect(HEADERS).toEqual({
      protocolVersion: 'mcp-protocol-version',
      sessionId: 'mcp-session-id',
      lastEventId: 'last-event-id',
      method: 'mcp-method',
      name: 'mcp-name',
      paramPrefix: 'mcp-param-',
    })
    expect(LEGACY_ONLY_HEADERS).toEqual(['mcp-session-id', 'last-event-id'])
    for (const [key, title] of Object.entries(HEADER_TITLES)) expect(title.toLowerCase()).toBe(HEADERS[key as keyof typeof HEADERS])
  })

  it.each([
    ['a', 'a'],
    [' \t a b\t ', 'a b'],
    ['', ''],
    [' \t', ''],
    ['\u00a0a', '\u00a0a'],
  ])('trims %j to %j', (value, trimmed) => {
    expect(trimOws(value)).toBe(trimmed)
  })

  it('reads one header and nothing that only the prototype has', () => {
    expect(headerValue({ 'mcp-name': ' x ' }, 'mcp-name')).toBe('x')
    expect(headerValue({ 'mcp-name': ['a', 'b'] }, 'mcp-name')).toBe('a, b')
    expect(headerValue({ 'mcp-name': undefined }, 'mcp-name')).toBeUndefined()
    expect(headerValue({}, 'constructor')).toBeUndefined()
  })
})
