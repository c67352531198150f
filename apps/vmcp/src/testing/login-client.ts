import { createHash, randomBytes } from 'node:crypto'
import type { OidcServer } from '@thv/testkit/oidc/oidc-server'
import { signIn } from '@thv/testkit/oidc/sign-in'

const REDIRECT_URI = 'http://127.0.0.1:8765/callback'

/** Makes the authorization server of a test a client of a provider. */
export async function registerAt(idp: OidcServer, issuer: string): Promise<{ client_id: string; client_secret: string }> {
  const answer = await fetch(`${idp.issuer}/reg`, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify({
      redirect_uris: [`${issuer}/oauth/callback`],
      grant_types: ['authorization_code', 'refresh_token'],
      token_endpoint_auth_method: 'client_secret_basic',
    }),
  })
  return (await answer.json()) as { client_id: string; client_secret: string }
}

/** A client that registers and leads its user through the login. Returns the access token. */
export async function logIn(issuer: string, options: { readonly user: string; readonly scope: string }): Promise<string> {
  const registered = await fetch(`${issuer}/oauth/register`, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify({ client_name: 'test', redirect_uris: [REDIRECT_URI] }),
  })
  const { client_id: client } = (await registered.json()) as { client_id: string }
  const verifier = randomBytes(32).toString('base64url')
  const url = new URL(`${issuer}/oauth/authorize`)
  const query = {
    response_type: 'code',
    client_id: client,
    redirect_uri: REDIRECT_URI,
    scope: options.scope,
    state: 'x',
    resource: `${issuer}/mcp`,
    code_challenge: createHash('sha256').update(verifier).digest('base64url'),
    code_challenge_method: 'S256',
  }
  for (const [name, value] of Object.entries(query)) url.searchParams.set(name, value)
  const landed = await signIn(url, { user: options.user, redirectUri: REDIRECT_URI })
  const answer = await fetch(`${issuer}/oauth/token`, {
    method: 'POST',
    body: new URLSearchParams({
      grant_type: 'authorization_code',
      code: landed.searchParams.get('code') ?? '',
      redirect_uri: REDIRECT_URI,
      client_id: client,
      code_verifier: verifier,
    }),
  })
  const { access_token: token } = (await answer.json()) as { access_token?: string }
  if (token === undefined) throw new Error(`no token: ${answer.status}, ${landed.search}`)
  return token
}
