import { headerText } from '@thv/http/header-map'
import type { Exchange } from '@thv/http/server/exchange'
import { HEADERS, headerValue } from '@thv/mcp/header-names'

/** The paths of the MCP endpoints that a gateway offers. */
export interface OfferedEndpoints {
  readonly mcp: boolean
  readonly sse: boolean
}

/**
 * The endpoint that a request to `/` means, for gateways in front of us that cut off the whole path. A POST that names a session in its
 * query, and a GET for an event stream without a session of streamable HTTP, belong to HTTP+SSE.
 */
export function rootEndpoint(
  { method, query, headers }: Exchange,
  { mcp, sse }: OfferedEndpoints,
): '/mcp' | '/sse' | '/messages' | undefined {
  if (sse && method === 'POST' && /(?:^\??|&)session_?[iI]d=/.test(query)) return '/messages'
  if (sse && method === 'GET' && headerValue(headers, HEADERS.sessionId) === undefined && wantsEvents(headers['accept'])) return '/sse'
  if (mcp) return method === 'GET' && !wantsEvents(headers['accept']) ? undefined : '/mcp'
  // The answer to a POST says that this is not streamable HTTP; a preflight asks whether a page may open a stream.
  return sse && (method === 'POST' || method === 'OPTIONS') ? '/sse' : undefined
}

/** A health check of a load balancer does not ask for events, and must not open a stream. */
function wantsEvents(accept: Exchange['headers'][string]): boolean {
  return headerText(accept)?.toLowerCase().includes('text/event-stream') === true
}
