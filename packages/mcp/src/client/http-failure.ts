import { headerText } from '@thv/http/header-map'
import { McpHttpError } from './client-errors.ts'
import type { LinkAnswer } from './link.ts'

/** The error for an HTTP status without an MCP message; undefined for success. */
export function httpError({ status, headers, body }: Pick<LinkAnswer, 'status' | 'headers' | 'body'>): McpHttpError | undefined {
  if (status >= 200 && status < 300) return undefined
  const challenge = headerText(headers['www-authenticate'])
  if (status === 401 || status === 407)
    return new McpHttpError('mcp_auth_required', `the MCP server wants credentials (HTTP ${status})`, { status, challenge })
  if (status === 403 && (challenge !== undefined || body?.kind !== 'response'))
    return new McpHttpError('mcp_auth_required', 'the MCP server refuses these credentials (HTTP 403)', { status, challenge })
  const retryAfterMs = retryAfterOf(headerText(headers['retry-after']))
  return new McpHttpError('mcp_http_status', `the MCP server answered HTTP ${status}${hintFor(status, retryAfterMs)}`, {
    status,
    retryAfterMs,
  })
}

function hintFor(status: number, retryAfterMs: number | undefined): string {
  if (retryAfterMs !== undefined) return `: try again in ${Math.ceil(retryAfterMs / 1000)} s`
  if (status === 404 || status === 405) return ': is this the URL of its MCP endpoint?'
  return status >= 300 && status < 400 ? ': redirects are not followed, use the URL it points to' : ''
}

/** Seconds only: a date would need a clock that both sides agree on. */
function retryAfterOf(value: string | undefined): number | undefined {
  return value !== undefined && /^\d{1,7}$/.test(value) ? Number(value) * 1000 : undefined
}
