import { createHash } from 'node:crypto'
import { isHeaderValue } from '@thv/http/header-map'
import type { Exchange } from '@thv/http/server/exchange'
import type { Headers } from '@thv/mcp/client/http/http-endpoint'

/** Headers of a client that go on to the backends. */
export interface PassedHeaders {
  /** Lower-case names. */
  readonly headers: Headers
  /** The same for equal headers. A digest: they may be secrets. */
  readonly key: string
}

/**
 * The headers with these names; undefined where the request has none of them. Names are in lower case and sorted. A value that is
 * not valid in a header stays here. Pure.
 */
export function passedHeaders(names: readonly string[], given: Exchange['headers']): PassedHeaders | undefined {
  const found: [string, string][] = []
  for (const name of names) {
    const value = Array.isArray(given[name]) ? given[name].join(', ') : given[name]
    if (value !== undefined && isHeaderValue(value)) found.push([name, value])
  }
  if (found.length === 0) return undefined
  return { headers: Object.fromEntries(found), key: createHash('sha256').update(JSON.stringify(found)).digest('base64url') }
}

/** Headers of a request to a backend. What is set for the backend wins; a header that carries its credentials is never the client's. */
export function withPassed(headers: Headers, { headers: passed }: PassedHeaders, withheld: readonly string[]): Headers {
  const all: Record<string, string> = {}
  for (const [name, value] of Object.entries(passed)) if (!withheld.includes(name)) all[name] = value
  return Object.assign(all, headers)
}
