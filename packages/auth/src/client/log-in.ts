import { createAuthorizationRequest, readAuthorizationResponse } from './authorization-request.ts'
import type { StoredLogin } from './credential-store.ts'
import { LoginFailed } from './login-failed.ts'
import { type LoopbackReceiver, openLoopbackReceiver } from './loopback-receiver.ts'
import { type FixedClient, fixedClientId, type OAuthClientId, registerClient } from './oauth-client-id.ts'
import { type OAuthHttp, vettedUrl } from './oauth-http.ts'
import { withTokens } from './refresh-login.ts'
import type { ResourceMetadata } from './resource-metadata.ts'
import { defaultServerMetadata, discoverServer, type ServerMetadata, tryDiscoverServer } from './server-metadata.ts'
import { requestTokens } from './token-request.ts'

/** The parts of a login that the program brings. */
export interface LoginSteps {
  /** Leads the user to the address; returns at once. */
  visit(url: string): void
  readonly clientName: string
  /** On 127.0.0.1, for the browser that comes back. Undefined: any free one. */
  readonly callbackPort?: number | undefined
}

export interface LoginRequest {
  readonly server: string
  /** Undefined: the server itself is the authorization server, as in revision 2025-03-26. */
  readonly resource: ResourceMetadata | undefined
  readonly steps: LoginSteps
  readonly fixed: FixedClient | undefined
  readonly clients: Readonly<Record<string, OAuthClientId>>
  readonly scopes: readonly string[]
  readonly now: number
  readonly signal: AbortSignal
}

/** Sends the user to the authorization server and waits until they come back. Throws LoginFailed. */
export async function logIn(http: OAuthHttp, request: LoginRequest): Promise<StoredLogin> {
  const server = await authorizationServer(http, request)
  try {
    return await logInAs(http, { ...request, authorization: server })
  } catch (error) {
    const known = request.clients[server.issuer]
    if (!(error instanceof LoginFailed) || !isForgotten(error) || known?.source !== 'registered') throw error
    // The server has lost the registration that was stored: register again, once.
    const { [server.issuer]: _, ...clients } = request.clients
    return await logInAs(http, { ...request, clients, authorization: server })
  }
}

function isForgotten({ oauthError }: LoginFailed): boolean {
  return oauthError === 'invalid_client' || oauthError === 'unauthorized_client'
}

async function authorizationServer(http: OAuthHttp, { server, resource, clients, signal }: LoginRequest): Promise<ServerMetadata> {
  if (resource === undefined) {
    const { origin } = new URL(server)
    return (await tryDiscoverServer(http, origin, signal)) ?? defaultServerMetadata(server)
  }
  const { authorizationServers } = resource
  const issuer = authorizationServers.find((each) => each in clients) ?? authorizationServers[0]
  if (issuer === undefined) throw new LoginFailed(`${resource.resource} does not say where its tokens come from`)
  return await discoverServer(http, issuer, signal)
}

async function logInAs(http: OAuthHttp, request: LoginRequest & { readonly authorization: ServerMetadata }): Promise<StoredLogin> {
  const { server, resource: metadata, steps, fixed, clients, authorization, now, signal } = request
  const { issuer, tokenEndpoint, revocationEndpoint } = authorization
  const resource = metadata?.resource
  const known = fixedClientId(authorization, fixed) ?? usable(clients[issuer], now)
  await using receiver = await openReceiver(steps, known)
  const { redirectUri } = receiver
  const isRegistered = known !== undefined && (known.source !== 'registered' || known.redirectUri === redirectUri)
  const client = isRegistered ? known : await registerClient(http, authorization, { clientName: steps.clientName, redirectUri, signal })
  const scopes = scopesFor(request.scopes, authorization)
  const asked = createAuthorizationRequest(authorization, { clientId: client.clientId, redirectUri, scopes, resource })
  const answer = receiver.response(asked.state, signal)
  answer.catch(() => {}) // awaited below
  steps.visit(vettedUrl(asked.url, true).href)
  const code = readAuthorizationResponse(await answer, asked, authorization)
  const form = { grant_type: 'authorization_code', code, redirect_uri: redirectUri, code_verifier: asked.verifier, resource }
  const tokens = await requestTokens(http, authorization, { client, form, signal })
  const login = { issuer, resource, servers: [server], client, tokenEndpoint, revocationEndpoint, scopes, refreshToken: undefined }
  return withTokens(login, tokens, now)
}

function usable(client: OAuthClientId | undefined, now: number): OAuthClientId | undefined {
  return client?.secretExpiresAt === undefined || client.secretExpiresAt > now ? client : undefined
}

/** At the port that the server knows from the registration, if it is free: some servers compare it. */
async function openReceiver({ callbackPort }: LoginSteps, known: OAuthClientId | undefined): Promise<LoopbackReceiver> {
  if (callbackPort !== undefined) return await openLoopbackReceiver(callbackPort)
  const registered = known?.redirectUri === undefined ? 0 : Number(new URL(known.redirectUri).port)
  return await openLoopbackReceiver(registered).catch(() => openLoopbackReceiver())
}

/** A refresh token needs `offline_access` where the server has it. */
function scopesFor(wanted: readonly string[], { scopes }: ServerMetadata): string[] {
  return [...new Set([...wanted, ...(scopes?.includes('offline_access') ? ['offline_access'] : [])])]
}
