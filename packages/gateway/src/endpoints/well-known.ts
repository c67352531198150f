import { headerText } from '@thv/http/header-map'
import type { Exchange } from '@thv/http/server/exchange'
import { sendEmpty, sendJson, sendMethodNotAllowed } from '@thv/http/server/respond'
import { METADATA_PATH, type ProtectedResource, resourceAddress } from '@thv/middleware/authenticate/protected-resource'

const PREFIX = '/.well-known/'

/**
 * Answers everything below `/.well-known/`: nothing of it ever gets to the backend, whose metadata would be about another address. The
 * one document there is names where clients get tokens for this server (RFC 9728).
 */
export function createWellKnown(resource: ProtectedResource | undefined): { handle(exchange: Exchange): boolean } {
  const shared = resource && {
    ...(resource.authorizationServers.length > 0 && { authorization_servers: resource.authorizationServers }),
    bearer_methods_supported: ['header'],
    scopes_supported: resource.scopes.length > 0 ? resource.scopes : ['openid'],
  }
  return {
    handle(exchange) {
      const { path, method } = exchange
      if (!path.startsWith(PREFIX)) return false
      const isDocument = path === METADATA_PATH || path.startsWith(`${METADATA_PATH}/`)
      const address = isDocument && resource ? resourceAddress(resource, exchange, path.slice(METADATA_PATH.length)) : undefined
      if (address === undefined) sendJson(exchange, { error: 'not_found' }, { status: 404 })
      else if (method === 'OPTIONS') sendEmpty(exchange, 204, corsHeaders(exchange))
      else if (method === 'GET' || method === 'HEAD')
        sendJson(exchange, { resource: address, ...shared }, { headers: corsHeaders(exchange) })
      else sendMethodNotAllowed(exchange, 'GET, HEAD, OPTIONS')
      return true
    },
  }
}

/** Public, so pages from anywhere may read it. */
function corsHeaders({ headers }: Exchange): string[] {
  const origin = headerText(headers['origin'])
  return [
    ...['Access-Control-Allow-Origin', origin ?? '*', 'Vary', 'Origin'],
    ...['Access-Control-Allow-Methods', 'GET, OPTIONS'],
    ...['Access-Control-Allow-Headers', 'mcp-protocol-version, Content-Type, Authorization'],
    ...['Access-Control-Max-Age', '86400', 'Cache-Control', 'no-store'],
  ]
}
