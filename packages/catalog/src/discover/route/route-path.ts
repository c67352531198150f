import { uriProblem } from '../../text.ts'
import type { BackendRef, PathMatch, RouteRule } from '../objects/http-route.ts'
import type { RemoteType } from '../objects/mcp-resource.ts'

export type ExternalPath =
  | { readonly ok: true; readonly path: string; readonly match: PathMatch }
  /** Only regular expressions, or paths that cannot stand in a URL. */
  | { readonly ok: false }

const EVERYTHING: PathMatch = { type: 'PathPrefix', value: '/', restricted: false }

/** The path that clients use: the first match that can be written down, those without further restrictions first. */
export function externalPath({ matches }: RouteRule): ExternalPath {
  const usable = (matches.length === 0 ? [EVERYTHING] : matches).filter(isUsable)
  const match = usable.find((candidate) => !candidate.restricted) ?? usable[0]
  return match === undefined ? { ok: false } : { ok: true, path: match.value, match }
}

function isUsable({ type, value }: PathMatch): boolean {
  if (type !== 'PathPrefix' && type !== 'Exact') return false
  return value.startsWith('/') && value.length <= 1_024 && !/[?#]/.test(value) && uriProblem(`http://host${value}`) === undefined
}

/** The path that the proxy receives for a request to exactly the exported URL. A rewrite of the backend counts before that of the rule. */
export function receivedPath(match: PathMatch, rule: RouteRule, backend: BackendRef): string {
  const rewrite = backend.rewrite ?? rule.rewrite
  if (rewrite === undefined) return match.value
  if (rewrite.type === 'ReplaceFullPath') return rewrite.value
  // Controllers ignore a prefix replacement where the whole path is matched.
  if (match.type !== 'PathPrefix') return match.value
  const replaced = rewrite.value.replace(/\/+$/, '')
  return replaced === '' ? '/' : replaced
}

const SERVED: Readonly<Record<RemoteType, readonly string[]>> = { sse: ['/', '/sse'], 'streamable-http': ['/', '/mcp'] }

export function isServedPath(path: string, type: RemoteType): boolean {
  return SERVED[type].includes(path)
}

export function servedPaths(type: RemoteType): string {
  return SERVED[type].join(' and ')
}
