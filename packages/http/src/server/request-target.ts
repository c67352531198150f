import type { IncomingMessage } from 'node:http'

const ABSOLUTE = /^https?:\/\/([^/?#]*)([^#]*)$/i

/**
 * Path and query of the request target. RFC 9112 §3.2.2: a server must take the absolute form too; it names a host of its own, which
 * must be the one of the Host header, or a check of one would not see the other. Undefined: no target of ours.
 */
export function originForm({ url = '', method, headers }: Pick<IncomingMessage, 'url' | 'method' | 'headers'>): string | undefined {
  if (url.startsWith('/')) return url
  if (url === '*') return method === 'OPTIONS' ? url : undefined
  const match = ABSOLUTE.exec(url)
  if (!match || match[1]?.toLowerCase() !== headers.host?.toLowerCase()) return undefined
  const rest = match[2] ?? ''
  return rest.startsWith('/') ? rest : `/${rest}`
}
