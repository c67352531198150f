import { purposeOf, type TokenCache, type TokenResult } from '@thv/auth/outgoing/token-cache'
import type { TokenEndpoint } from '@thv/auth/outgoing/token-endpoint'
import type { Rejection } from '@thv/mcp/wire-errors'
import type { Middleware } from '../pipeline/middleware.ts'
import type { Hop } from '../pipeline/request-context.ts'
import { addCredentials } from './add-credentials.ts'
import type { FailureLog } from './failure-log.ts'
import { tokenRejection } from './token-rejection.ts'

export interface ClientCredentialsOptions {
  /** Of the issuer, or of the token endpoint. */
  readonly source: string
  readonly clientId: string
  readonly scopes: readonly string[]
  /** Resource indicator (RFC 8707). */
  readonly resource?: string | undefined
}

export interface ClientCredentialsDeps {
  readonly endpoint: TokenEndpoint
  readonly cache: TokenCache
  readonly failures: FailureLog
}

/** Authenticates at the backend with a token of our own (RFC 6749 §4.4), the same for all callers and for our own requests. */
export function createClientCredentials(
  options: ClientCredentialsOptions,
  { endpoint, cache, failures }: ClientCredentialsDeps,
): Middleware {
  const { source, clientId, scopes, resource } = options
  const key = purposeOf(['client_credentials', source, clientId, scopes, resource])
  let headers = { result: undefined as TokenResult | undefined, map: { authorization: '' } }

  function form(): URLSearchParams {
    const made = new URLSearchParams({ grant_type: 'client_credentials' })
    if (scopes.length > 0) made.set('scope', scopes.join(' '))
    if (resource !== undefined) made.set('resource', resource)
    return made
  }

  function apply(hop: Hop, result: TokenResult): Rejection | undefined {
    if (!result.ok) return tokenRejection(result.failure)
    if (headers.result !== result) headers = { result, map: { authorization: result.value } }
    addCredentials(hop, headers.map)
    return undefined
  }

  async function obtain(hop: Hop): Promise<Rejection | undefined> {
    const request = () => endpoint.request(form(), { isExchange: false })
    return apply(hop, await cache.fetch(key, request, { onFailure: failures.report }))
  }

  return {
    name: 'remote-auth',
    withholds: ['authorization'],
    prepare(hop) {
      const known = cache.get(key)
      return known === undefined ? obtain(hop) : apply(hop, known)
    },
    credentialsRejected({ credentials }) {
      const sent = credentials?.['authorization']
      return typeof sent === 'string' && cache.reject(key, sent.slice('Bearer '.length))
    },
  }
}
