import { isHeaderValue, isToken } from '@thv/http/header-map'
import { InvalidOptions } from '../pipeline/invalid-options.ts'
import { type Middleware, setHeader } from '../pipeline/middleware.ts'

/** Headers that belong to the connection, to the trust between proxies, or to MCP itself. */
const RESTRICTED: ReadonlySet<string> = new Set([
  ...['host', 'connection', 'keep-alive', 'te', 'trailer', 'upgrade', 'http2-settings', 'transfer-encoding'],
  ...['proxy-authorization', 'proxy-authenticate', 'proxy-connection'],
  ...['content-length', 'content-type', 'content-encoding', 'accept', 'accept-encoding', 'expect', 'origin'],
  ...['forwarded', 'x-forwarded-for', 'x-forwarded-host', 'x-forwarded-port', 'x-forwarded-prefix', 'x-forwarded-proto', 'x-real-ip'],
  ...['mcp-session-id', 'mcp-protocol-version', 'mcp-method', 'mcp-name', 'last-event-id'],
])

export interface HeaderForwardOptions {
  /** Name to value. Values may be secrets. */
  readonly headers: Readonly<Record<string, string>>
}

export interface HeaderForwardDeps {
  warn(message: string): void
}

/**
 * Adds fixed headers to every request to a remote server. They replace headers of the client, but never credentials that another
 * middleware sets. Throws InvalidOptions on a name or value that must not be sent.
 */
export function createHeaderForward({ headers }: HeaderForwardOptions, { warn }: HeaderForwardDeps): Middleware {
  const pairs = Object.entries(headers).map(([name, value]) => checked(name, value))
  const repeated = pairs.find(([name], at) => pairs.findIndex(([other]) => other === name) !== at)
  if (repeated) throw new InvalidOptions(`${repeated[0]} is set twice`)
  if (pairs.some(([name]) => name === 'authorization'))
    warn('sets Authorization; credentials for the remote server take precedence over it')
  return {
    name: 'header-forward',
    headers(_hop, set) {
      for (const [name, value] of pairs) setHeader(set, name, value)
    },
  }
}

/** The value may be a secret: no message quotes it. */
function checked(name: string, value: string): readonly [string, string] {
  const lower = name.toLowerCase()
  const problem = !isToken(name)
    ? 'is not a valid header name'
    : RESTRICTED.has(lower) || lower.startsWith('mcp-param-')
      ? 'is set by the proxy itself and cannot be set here'
      : !isHeaderValue(value)
        ? 'has a value that is not valid in a header'
        : undefined
  if (problem !== undefined) throw new InvalidOptions(`${JSON.stringify(name)} ${problem}`)
  return [lower, value]
}
