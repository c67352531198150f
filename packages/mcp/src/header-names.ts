/** Lower case throughout, as node:http gives them, so that a forwarded and an own header of one name cannot stand side by side. */
export const HEADERS = {
  protocolVersion: 'mcp-protocol-version',
  sessionId: 'mcp-session-id',
  lastEventId: 'last-event-id',
  method: 'mcp-method',
  name: 'mcp-name',
  paramPrefix: 'mcp-param-',
} as const

/** As they are written in texts for people. */
export const HEADER_TITLES = {
  protocolVersion: 'MCP-Protocol-Version',
  sessionId: 'Mcp-Session-Id',
  method: 'Mcp-Method',
  name: 'Mcp-Name',
  paramPrefix: 'Mcp-Param-',
} as const

/** They mean nothing on a modern request and are never forwarded with one: a forged envelope must not carry a session past its guard. */
export const LEGACY_ONLY_HEADERS: readonly string[] = [HEADERS.sessionId, HEADERS.lastEventId]

/** Request headers by lower-case name, in the form of node:http. */
export interface HeaderBag {
  readonly [name: string]: string | readonly string[] | undefined
}

/**
 * The value of a header without the white space around it. A repeated header is joined as HTTP says, which makes it
 * different from any single value it could be compared with.
 */
export function headerValue(headers: HeaderBag, name: string): string | undefined {
  const value = Object.hasOwn(headers, name) ? headers[name] : undefined
  if (value === undefined) return undefined
  return trimOws(typeof value === 'string' ? value : value.join(', '))
}

/** Optional white space of RFC 9110 is space and tab only. */
export function trimOws(value: string): string {
  let start = 0
  let end = value.length
  while (start < end && isOws(value.charCodeAt(start))) start++
  while (end > start && isOws(value.charCodeAt(end - 1))) end--
  return start === 0 && end === value.length ? value : value.slice(start, end)
}

function isOws(code: number): boolean {
  return code === 0x20 || code === 0x09
}
