import type { HttpConfig } from '../../config/registry-config.ts'

export interface Cors {
  /** For every answer to a request of this origin; empty for origins that are not let in. */
  headersFor(origin: string | undefined): readonly string[]
  preflight(origin: string | undefined, allow: string): readonly string[]
}

const NONE: readonly string[] = []
const EXPOSED = 'ETag, Retry-After, WWW-Authenticate, X-Request-Id'

/** Off unless configured. Credentials are never part of it: tokens come in a header that a page sets itself. */
export function createCors(config: HttpConfig['cors'], { anonymous }: { readonly anonymous: boolean }): Cors {
  if (config === undefined) return { headersFor: () => NONE, preflight: () => NONE }
  const { origins, maxAgeSeconds } = config
  const any = origins.includes('*')
  const allowed = (origin: string | undefined) => (any ? '*' : origin !== undefined && origins.includes(origin) ? origin : undefined)
  // Without authentication, any web page could write through the browser of its reader. Writes need JSON.
  const readOnly = any && anonymous
  const vary = any ? NONE : ['Vary', 'Origin']

  return {
    headersFor(origin) {
      if (origin === undefined) return NONE
      const granted = allowed(origin)
      return granted === undefined ? NONE : ['Access-Control-Allow-Origin', granted, 'Access-Control-Expose-Headers', EXPOSED]
    },
    preflight(origin, allow) {
      if (origin === undefined || allowed(origin) === undefined) return vary
      const headers = `${readOnly ? '' : 'Authorization, Content-Type, '}If-None-Match, X-Request-Id`
      return [
        ...['Access-Control-Allow-Methods', readOnly ? 'GET, HEAD, OPTIONS' : allow, 'Access-Control-Allow-Headers', headers],
        ...['Access-Control-Max-Age', String(maxAgeSeconds), ...vary],
      ]
    },
  }
}
