import { headerText } from '@thv/http/header-map'
import type { Exchange } from '@thv/http/server/exchange'
import { sendEmpty } from '@thv/http/server/respond'

/** Request headers that clients in pages send; `Mcp-Param-*` have names of their own, so those that a preflight asks for are added. */
const REQUEST_HEADERS = [
  'accept, authorization, content-type, last-event-id',
  'mcp-method, mcp-name, mcp-protocol-version, mcp-session-id, traceparent, tracestate',
].join(', ')

/**
 * For a request of a page whose origin is allowed by `allowed_origins`, which has been checked: lets the page read the answer with the
 * headers that it needs to log in and to keep its session. Answers a preflight, which carries no token; true if it was one.
 */
export function allowCrossOrigin(exchange: Exchange): boolean {
  const { headers, method, response } = exchange
  const origin = headerText(headers['origin'])
  if (origin === undefined) return false
  const shared = ['Access-Control-Allow-Origin', origin, 'Vary', 'Origin']
  const wanted = headerText(headers['access-control-request-method'])
  if (method === 'OPTIONS' && wanted !== undefined) {
    const asked = headerText(headers['access-control-request-headers'])
    const params = (asked ?? '').split(',').filter((name) => /^\s*mcp-param-[\w-]{1,100}\s*$/i.test(name))
    sendEmpty(exchange, 204, [
      ...shared,
      ...['Access-Control-Allow-Methods', 'GET, POST, DELETE'],
      ...['Access-Control-Allow-Headers', [REQUEST_HEADERS, ...params.map((name) => name.trim().toLowerCase())].join(', ')],
      ...['Access-Control-Max-Age', '600'],
    ])
    return true
  }
  response.setHeader('Access-Control-Allow-Origin', origin)
  response.setHeader('Vary', 'Origin')
  response.setHeader('Access-Control-Expose-Headers', 'WWW-Authenticate, Mcp-Session-Id')
  return false
}
