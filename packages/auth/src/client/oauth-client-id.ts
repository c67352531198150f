import { errorCodeOf, LoginFailed } from './login-failed.ts'
import { type OAuthHttp, stringOf } from './oauth-http.ts'
import type { ServerMetadata } from './server-metadata.ts'

export type TokenAuthMethod = 'none' | 'client_secret_basic' | 'client_secret_post'

/** A client of an authorization server. */
export interface OAuthClientId {
  readonly clientId: string
  readonly clientSecret?: string | undefined
  readonly authMethod: TokenAuthMethod
  /** How the id came about. `registered` ones are given up when the server does not know them any more. */
  readonly source: 'fixed' | 'document' | 'registered'
  /** Of a registration: the addresses that the server knows. */
  readonly redirectUri?: string | undefined
  /** Epoch milliseconds at which the secret ends. */
  readonly secretExpiresAt?: number | undefined
}

export interface FixedClient {
  /** An id that the server's administrator gave out, or the https URL of a client ID metadata document. */
  readonly clientId: string
  readonly clientSecret?: string | undefined
}

/** The configured client. Undefined: there is none that this server would know. Throws LoginFailed for a document that the server does not read. */
export function fixedClientId(server: ServerMetadata, fixed: FixedClient | undefined): OAuthClientId | undefined {
  if (fixed === undefined) return undefined
  const { clientId, clientSecret } = fixed
  const isDocument = clientSecret === undefined && isDocumentUrl(clientId)
  if (isDocument && !server.readsClientDocuments) return undefined
  const authMethod = clientSecret === undefined ? 'none' : secretMethod(server)
  return { clientId, clientSecret, authMethod, source: isDocument ? 'document' : 'fixed' }
}

/** A URL can be a client ID if it is https and has a path. */
export function isDocumentUrl(clientId: string): boolean {
  const url = URL.parse(clientId)
  return url?.protocol === 'https:' && url.pathname !== '/' && url.hash === '' && url.username === ''
}

export interface Registration {
  readonly clientName: string
  readonly redirectUri: string
  readonly signal?: AbortSignal | undefined
}

/** Registers a program of this machine (RFC 7591). Throws LoginFailed. */
export async function registerClient(http: OAuthHttp, server: ServerMetadata, registration: Registration): Promise<OAuthClientId> {
  const { clientName, redirectUri, signal } = registration
  if (server.registrationEndpoint === undefined)
    throw new LoginFailed(
      `authorization server ${server.issuer} does not register clients: it needs a client ID that its administrator gives out`,
    )
  const asked = publicMethod(server)
  const { status, json } = await http.send({
    url: server.registrationEndpoint,
    body: {
      client_name: clientName,
      redirect_uris: [redirectUri],
      grant_types: ['authorization_code', 'refresh_token'],
      response_types: ['code'],
      token_endpoint_auth_method: asked,
      application_type: 'native',
    },
    signal,
  })
  const clientId = stringOf(json?.['client_id'])
  if ((status !== 200 && status !== 201) || clientId === undefined) {
    const oauthError = errorCodeOf(json?.['error'])
    throw new LoginFailed(
      `authorization server ${server.issuer} refused the registration (HTTP ${status}${oauthError ? ` ${oauthError}` : ''})`,
      {
        oauthError,
      },
    )
  }
  const clientSecret = stringOf(json?.['client_secret'])
  const expiry = json?.['client_secret_expires_at']
  return {
    clientId,
    clientSecret,
    authMethod: grantedMethod(json?.['token_endpoint_auth_method'], { asked, clientSecret, server }),
    source: 'registered',
    redirectUri,
    ...(typeof expiry === 'number' && expiry > 0 && clientSecret !== undefined && { secretExpiresAt: expiry * 1_000 }),
  }
}

/** A program on a laptop keeps no secret, so `none` where that is possible; a server that does not say what it takes may take it. */
function publicMethod({ tokenAuthMethods }: ServerMetadata): TokenAuthMethod {
  if (tokenAuthMethods === undefined || tokenAuthMethods.includes('none')) return 'none'
  return tokenAuthMethods.includes('client_secret_post') && !tokenAuthMethods.includes('client_secret_basic')
    ? 'client_secret_post'
    : 'client_secret_basic'
}

function secretMethod(server: ServerMetadata): TokenAuthMethod {
  const { tokenAuthMethods = ['client_secret_basic'] } = server
  return tokenAuthMethods.includes('client_secret_basic') || !tokenAuthMethods.includes('client_secret_post')
    ? 'client_secret_basic'
    : 'client_secret_post'
}

function grantedMethod(
  granted: unknown,
  { asked, clientSecret, server }: { asked: TokenAuthMethod; clientSecret: string | undefined; server: ServerMetadata },
): TokenAuthMethod {
  if (clientSecret === undefined) return 'none'
  if (granted === 'none' || granted === 'client_secret_basic' || granted === 'client_secret_post') return granted
  return asked === 'none' ? secretMethod(server) : asked
}
