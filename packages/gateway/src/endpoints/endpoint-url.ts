import type { Exchange } from '@thv/http/server/exchange'

export interface EndpointConfig {
  readonly endpointPrefix: string
  readonly trustProxyHeaders: boolean
}

/**
 * Where an HTTP+SSE client must POST to: a path, so that scheme and host stay what the client used. Before it stands what a proxy in
 * front of us has cut off: as configured, else as a trusted proxy says.
 */
export function endpointOf(exchange: Exchange, sessionId: string, { endpointPrefix, trustProxyHeaders }: EndpointConfig): string {
  const forwarded = trustProxyHeaders ? exchange.headers['x-forwarded-prefix'] : undefined
  const prefix = endpointPrefix !== '' ? endpointPrefix : typeof forwarded === 'string' ? forwarded.trim() : ''
  return `${cleanPrefix(prefix)}/messages?sessionId=${sessionId}`
}

/** Only a plain path: anything else, such as `//host`, could send the client to another origin. */
function cleanPrefix(prefix: string): string {
  const path = prefix.replace(/\/+$/, '').replace(/\/sse$/, '')
  return /^(?:\/[\w.~%-]+)+$/.test(path) ? path : ''
}
