import { createHash, randomBytes } from 'node:crypto'
import type { OidcServer } from './oidc-server.ts'
import { signIn } from './sign-in.ts'

/** It is never called: `signIn` stops before it. */
const REDIRECT_URI = 'http://127.0.0.1:8765/callback'
const HEADERS = { 'content-type': 'application/json' }

export interface RegisteredClient {
  readonly client_id: string
  readonly client_secret: string
}

/** Makes an authorization server a client of a provider. `name`: of the provider, where it has a redirect URI of its own. */
export async function registerAt(idp: OidcServer, issuer: string, name?: string): Promise<RegisteredClient> {
  const callback = `${issuer}/oauth/callback`
  const metadata = {
    redirect_uris: name === undefined ? [callback] : [callback, `${callback}/${name}`],
    grant_types: ['authorization_code', 'refresh_token'],
    token_endpoint_auth_method: 'client_secret_basic',
  }
  const answer = await fetch(`${idp.issuer}/reg`, { method: 'POST', headers: HEADERS, body: JSON.stringify(metadata) })
  return (await answer.json()) as RegisteredClient
}

export interface LoggedIn {
  readonly accessToken: string
  readonly refreshToken: string | undefined
  readonly clientId: string
}

export interface LogInOptions {
  readonly user: string
  readonly scope: string
  /** Of an earlier login: registrations are limited to one a second. */
  readonly clientId?: string | undefined
}

/** A client of an authorization server: registers, leads its user through the login and redeems the code. */
export async function logIn(issuer: string, { user, scope, clientId: known }: LogInOptions): Promise<LoggedIn> {
  const clientId = known ?? (await registeredClient(issuer))
  const verifier = randomBytes(32).toString('base64url')
  const url = new URL(`${issuer}/oauth/authorize`)
  const query = {
    ...{ response_type: 'code', client_id: clientId, redirect_uri: REDIRECT_URI, scope, state: 'x', resource: `${issuer}/mcp` },
    code_challenge: createHash('sha256').update(verifier).digest('base64url'),
    code_challenge_method: 'S256',
  }
  for (const [name, value] of Object.entries(query)) url.searchParams.set(name, value)
  const landed = await signIn(url, { user, redirectUri: REDIRECT_URI })
  const form = {
    ...{ grant_type: 'authorization_code', code: landed.searchParams.get('code') ?? '', redirect_uri: REDIRECT_URI },
    ...{ client_id: clientId, code_verifier: verifier },
  }
  const answer = await fetch(`${issuer}/oauth/token`, { method: 'POST', body: new URLSearchParams(form) })
  const { access_token: accessToken, refresh_token: refreshToken } = (await answer.json()) as Record<string, string | undefined>
  if (accessToken === undefined) throw new Error(`the login ended with ${answer.status} and ${[...landed.searchParams.keys()].join(', ')}`)
  return { accessToken, refreshToken, clientId }
}

async function registeredClient(issuer: string): Promise<string> {
  const metadata = { client_name: 'test', redirect_uris: [REDIRECT_URI] }
  const answer = await fetch(`${issuer}/oauth/register`, { method: 'POST', headers: HEADERS, body: JSON.stringify(metadata) })
  if (answer.status !== 201) throw new Error(`the registration ended with ${answer.status}`)
  return ((await answer.json()) as { client_id: string }).client_id
}

/** Whether a token is one of this provider. */
export async function isActiveAt(idp: OidcServer, token: string): Promise<boolean> {
  const basic = Buffer.from(`${idp.clientId}:${idp.clientSecret}`).toString('base64')
  const answer = await fetch(idp.introspectionUrl, {
    method: 'POST',
    headers: { authorization: `Basic ${basic}` },
    body: new URLSearchParams({ token }),
  })
  return ((await answer.json()) as { active: boolean }).active
}
