import { LoginFailed } from './login-failed.ts'
import { type OAuthHttp, stringOf, stringsOf } from './oauth-http.ts'

/** An authorization server as its metadata describes it (RFC 8414, OpenID Connect Discovery). */
export interface ServerMetadata {
  readonly issuer: string
  readonly authorizationEndpoint: string
  readonly tokenEndpoint: string
  readonly registrationEndpoint: string | undefined
  readonly revocationEndpoint: string | undefined
  readonly scopes: readonly string[] | undefined
  readonly tokenAuthMethods: readonly string[] | undefined
  /** `iss` is in every authorization response (RFC 9207). */
  readonly sendsIssuer: boolean
  /** A URL can be a client ID. */
  readonly readsClientDocuments: boolean
}

/** Candidates in the order of the MCP specification: both well-known names in front of the issuer's path, then OpenID's behind it. */
export function serverMetadataUrls(issuer: string): string[] {
  const { origin, pathname } = new URL(issuer)
  const path = pathname.replace(/\/$/, '')
  const urls = [`${origin}/.well-known/oauth-authorization-server${path}`, `${origin}/.well-known/openid-configuration${path}`]
  return path === '' ? urls : [...urls, `${origin}${path}/.well-known/openid-configuration`]
}

/** Throws LoginFailed: no document, one of another issuer (RFC 8414 §3.3), or a server without PKCE by S256. */
export async function discoverServer(http: OAuthHttp, issuer: string, signal?: AbortSignal): Promise<ServerMetadata> {
  const found = await tryDiscoverServer(http, issuer, signal)
  if (found === undefined) throw new LoginFailed(`authorization server ${issuer} has no metadata`)
  return found
}

/** As `discoverServer`; undefined where there is no document. */
export async function tryDiscoverServer(http: OAuthHttp, issuer: string, signal?: AbortSignal): Promise<ServerMetadata | undefined> {
  for (const url of serverMetadataUrls(issuer)) {
    const { status, json } = await http.send({ url, signal })
    if (status >= 500) throw new LoginFailed(`authorization server ${issuer} answered HTTP ${status}`)
    if (status === 200 && json !== undefined) return readServerMetadata(json, issuer)
  }
  return undefined
}

function readServerMetadata(json: Readonly<Record<string, unknown>>, issuer: string): ServerMetadata {
  if (json['issuer'] !== issuer) throw new LoginFailed(`the metadata at ${issuer} is of another issuer`)
  const authorizationEndpoint = stringOf(json['authorization_endpoint'])
  const tokenEndpoint = stringOf(json['token_endpoint'])
  if (authorizationEndpoint === undefined || tokenEndpoint === undefined)
    throw new LoginFailed(`authorization server ${issuer} names no authorization_endpoint or no token_endpoint`)
  if (!stringsOf(json['code_challenge_methods_supported'])?.includes('S256'))
    throw new LoginFailed(`authorization server ${issuer} does not support PKCE with S256`)
  return {
    issuer,
    authorizationEndpoint,
    tokenEndpoint,
    registrationEndpoint: stringOf(json['registration_endpoint']),
    revocationEndpoint: stringOf(json['revocation_endpoint']),
    scopes: stringsOf(json['scopes_supported']),
    tokenAuthMethods: stringsOf(json['token_endpoint_auth_methods_supported']),
    sendsIssuer: json['authorization_response_iss_parameter_supported'] === true,
    readsClientDocuments: json['client_id_metadata_document_supported'] === true,
  }
}

/** The endpoints of a server of revision 2025-03-26 without metadata: fixed paths at the origin of the MCP server. */
export function defaultServerMetadata(server: string): ServerMetadata {
  const { origin } = new URL(server)
  return {
    issuer: origin,
    authorizationEndpoint: `${origin}/authorize`,
    tokenEndpoint: `${origin}/token`,
    registrationEndpoint: `${origin}/register`,
    revocationEndpoint: undefined,
    scopes: undefined,
    tokenAuthMethods: undefined,
    sendsIssuer: false,
    readsClientDocuments: false,
  }
}
