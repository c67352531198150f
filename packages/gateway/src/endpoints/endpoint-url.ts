import type { Exchange } from '@thv/http/server/exchange'

export interface EndpointConfig {
  readonly endpointPrefix: string
  readonly trustProxyHeaders: boolean
}

/**
 * Where an HTTP+SSE client must POST to: a path, so that scheme and host stay what the client used. Before it stands what a proxy in
 * front of us has cut off: as configured, else as a trusted proxy says. A stream that was opened at `/` names the query alone, which resolves
 * to the URL that the client used, whatever a gateway has cut off.
 */
export function endpointOf(exchange: Exchange, sessionId: string, { endpointPrefix, trustProxyHeaders }: EndpointConfig): string {
  if (exchange.path === '/') return `?sessionId=${sessionId}`
  const forwarded = trustProxyHeaders ? exchange.headers['x-forwarded-prefix'] : undefined
  const prefix = endpointPrefix !== '' ? endpointPrefix : typeof forwarded === 'string' ? forwarded.trim() : ''
  return `${cleanPrefix(prefix)}/messages?sessionId=${sessionId}`
}

/** Only a plain path: anything else, such as `//host`, could send the client to another origin. */
function cleanPrefix(prefix: string): string {
  const path = prefix.replace(/\/+$/, '').replace(/\/sse$/, '')
  return /^(?:\/[\w.~%-]+)+$/.test(path) ? path : ''
}
