import { headerText } from '@thv/http/header-map'
import type { Exchange } from '@thv/http/server/exchange'
import { sendEmpty, sendJson, sendMethodNotAllowed } from '@thv/http/server/respond'

/** What RFC 9728 calls protected resource metadata: where clients get tokens for this server. */
export interface ResourceMetadata {
  readonly resource: string
  readonly authorizationServers: readonly string[]
  readonly scopes: readonly string[]
}

const PREFIX = '/.well-known/'
const DOCUMENT = '/.well-known/oauth-protected-resource'

/** Answers everything below `/.well-known/`: nothing of it ever gets to the backend, whose metadata would be about another address. */
export function createWellKnown(metadata: ResourceMetadata | undefined): { handle(exchange: Exchange): boolean } {
  const document = metadata && {
    resource: metadata.resource,
    authorization_servers: metadata.authorizationServers,
    bearer_methods_supported: ['header'],
    scopes_supported: metadata.scopes.length > 0 ? metadata.scopes : ['openid'],
  }
  return {
    handle(exchange) {
      const { path, method } = exchange
      if (!path.startsWith(PREFIX)) return false
      const isDocument = path === DOCUMENT || path.startsWith(`${DOCUMENT}/`)
      if (!isDocument || document === undefined) sendJson(exchange, { error: 'not_found' }, { status: 404 })
      else if (method === 'OPTIONS') sendEmpty(exchange, 204, corsHeaders(exchange))
      else if (method === 'GET' || method === 'HEAD') sendJson(exchange, document, { headers: corsHeaders(exchange) })
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
    ...['Access-Control-Max-Age', '86400'],
  ]
}
