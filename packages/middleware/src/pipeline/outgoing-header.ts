import { isHeaderValue, isToken } from '@thv/http/header-map'
import { InvalidOptions } from './invalid-options.ts'

/** Headers that belong to the connection, to the trust between proxies, or to MCP itself. */
const RESTRICTED: ReadonlySet<string> = new Set([
  ...['host', 'connection', 'keep-alive', 'te', 'trailer', 'upgrade', 'http2-settings', 'transfer-encoding'],
  ...['proxy-authorization', 'proxy-authenticate', 'proxy-connection'],
  ...['content-length', 'content-type', 'content-encoding', 'accept', 'accept-encoding', 'expect', 'origin'],
  ...['forwarded', 'x-forwarded-for', 'x-forwarded-host', 'x-forwarded-port', 'x-forwarded-prefix', 'x-forwarded-proto', 'x-real-ip'],
  ...['mcp-session-id', 'mcp-protocol-version', 'mcp-method', 'mcp-name', 'last-event-id'],
])

/** The name in lower case. Throws InvalidOptions on a name that users cannot set. */
export function checkedHeaderName(name: string): string {
  const lower = name.toLowerCase()
  if (!isToken(name)) throw new InvalidOptions(`${JSON.stringify(name)} is not a valid header name`)
  if (RESTRICTED.has(lower) || lower.startsWith('mcp-param-'))
    throw new InvalidOptions(`${JSON.stringify(name)} is set by the proxy itself and cannot be set here`)
  return lower
}

/** A header that users set. The value may be a secret: no message quotes it. Throws InvalidOptions. */
export function checkedHeader(name: string, value: string): readonly [string, string] {
  const lower = checkedHeaderName(name)
  if (!isHeaderValue(value)) throw new InvalidOptions(`${JSON.stringify(name)} has a value that is not valid in a header`)
  return [lower, value]
}
