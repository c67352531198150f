import { createHash, randomBytes, timingSafeEqual } from 'node:crypto'
import { errorCodeOf, LoginFailed } from './login-failed.ts'
import type { ServerMetadata } from './server-metadata.ts'

/** One visit of the user to an authorization server. The verifier is a secret. */
export interface AuthorizationRequest {
  readonly url: string
  readonly state: string
  readonly verifier: string
  readonly redirectUri: string
}

export interface AuthorizationParameters {
  readonly clientId: string
  readonly redirectUri: string
  readonly scopes: readonly string[]
  /** RFC 8707. */
  readonly resource?: string | undefined
  readonly nonce?: string | undefined
  /** Further parameters that the server wants. The ones of this request cannot be replaced. */
  readonly more?: Readonly<Record<string, string>> | undefined
}

/** Authorization code with PKCE by S256 (RFC 7636). */
export function createAuthorizationRequest(server: ServerMetadata, parameters: AuthorizationParameters): AuthorizationRequest {
  const { clientId, redirectUri, scopes, resource, nonce, more } = parameters
  const [state, verifier] = [randomBytes(32).toString('base64url'), randomBytes(32).toString('base64url')]
  const url = new URL(server.authorizationEndpoint)
  const own: Readonly<Record<string, string | undefined>> = {
    response_type: 'code',
    client_id: clientId,
    redirect_uri: redirectUri,
    state,
    code_challenge: createHash('sha256').update(verifier).digest('base64url'),
    code_challenge_method: 'S256',
    scope: scopes.length === 0 ? undefined : scopes.join(' '),
    resource,
    nonce,
    // OpenID Connect Core §11: without it the server ignores the scope.
    prompt: scopes.includes('offline_access') ? 'consent' : undefined,
  }
  for (const [name, value] of Object.entries({ ...more, ...own })) if (value !== undefined) url.searchParams.set(name, value)
  return { url: url.href, state, verifier, redirectUri }
}

/**
 * The code in the query with which the user came back. Throws LoginFailed for a response to another request, of another issuer (RFC 9207: then
 * nothing else in it is believed), or with an error.
 */
export function readAuthorizationResponse(query: URLSearchParams, request: AuthorizationRequest, server: ServerMetadata): string {
  if (!isSame(single(query, 'state'), request.state)) throw new LoginFailed('the response belongs to another login')
  const issuer = single(query, 'iss')
  if (issuer === undefined && server.sendsIssuer)
    throw new LoginFailed(`the response does not name its issuer, as ${server.issuer} always does`)
  if (issuer !== undefined && issuer !== server.issuer) throw new LoginFailed(`the response is not of ${server.issuer}`)
  if (query.has('error')) {
    const oauthError = errorCodeOf(single(query, 'error')) ?? 'unknown error'
    throw new LoginFailed(`authorization server ${server.issuer} answered ${oauthError}`, { oauthError })
  }
  const code = single(query, 'code')
  if (code === undefined || code === '') throw new LoginFailed('the response has no code')
  return code
}

/** A parameter that came twice means nothing (RFC 6749 §3.1). */
function single(query: URLSearchParams, name: string): string | undefined {
  const values = query.getAll(name)
  if (values.length > 1) throw new LoginFailed(`the response has ${name} more than once`)
  return values[0]
}

function isSame(given: string | undefined, expected: string): boolean {
  if (given === undefined) return false
  const [left, right] = [given, expected].map((text) => createHash('sha256').update(text).digest()) as [Buffer, Buffer]
  return timingSafeEqual(left, right)
}
