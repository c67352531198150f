import { isHeaderValue, isToken } from '@thv/http/header-map'
import { runConfigError } from '@thv/runconfig/run-config-errors'
import type { Middleware } from '../pipeline/pipeline.ts'

/** Headers that belong to the connection, to the trust between proxies, or to MCP itself. */
const RESTRICTED: ReadonlySet<string> = new Set([
  ...['host', 'connection', 'keep-alive', 'te', 'trailer', 'upgrade', 'http2-settings', 'transfer-encoding'],
  ...['proxy-authorization', 'proxy-authenticate', 'proxy-connection'],
  ...['content-length', 'content-type', 'content-encoding', 'accept', 'accept-encoding', 'expect', 'origin'],
  ...['forwarded', 'x-forwarded-for', 'x-forwarded-host', 'x-forwarded-port', 'x-forwarded-prefix', 'x-forwarded-proto', 'x-real-ip'],
  ...['mcp-session-id', 'mcp-protocol-version', 'mcp-method', 'mcp-name', 'last-event-id'],
])

/**
 * Fixed headers for every request to a remote server. They go over what the client sent, but never over what a link for
 * authentication has set or will set. Throws `run_config_invalid` on a name or value that must not be sent.
 */
export function headerForward(headers: Readonly<Record<string, string>>): Middleware {
  const pairs = Object.entries(headers).map(([name, value]) => checked(name, value))
  const repeated = pairs.find(([name], at) => pairs.findIndex(([other]) => other === name) !== at)
  if (repeated) throw runConfigError('run_config_invalid', `header_forward: ${repeated[0]} is there twice`)
  return {
    name: 'header-forward',
    headers(_caller, set) {
      for (const [name, value] of pairs) if (!(name in set)) set[name] = value
    },
  }
}

/** The value may be a secret: no message quotes it. */
function checked(name: string, value: string): readonly [string, string] {
  const lower = name.toLowerCase()
  const problem = !isToken(name)
    ? 'is not the name of a header'
    : RESTRICTED.has(lower) || lower.startsWith('mcp-param-')
      ? 'is set by the proxy itself and cannot be set here'
      : !isHeaderValue(value)
        ? 'has a value that no header can have'
        : undefined
  if (problem !== undefined) throw runConfigError('run_config_invalid', `header_forward: ${JSON.stringify(name)} ${problem}`)
  return [lower, value]
}
