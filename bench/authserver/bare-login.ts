import { createHash, randomBytes } from 'node:crypto'
import type { IncomingMessage, ServerResponse } from 'node:http'
import { createRemoteJWKSet, jwtVerify } from 'jose'
import type { Provider, ProviderInteraction } from 'oidc-provider'
import { request as send } from 'undici'

export interface BareUpstream {
  readonly issuer: string
  readonly clientId: string
  readonly clientSecret: string
}

/** The part of an interaction that the pages of a login use. */
type Interaction = ProviderInteraction & {
  readonly prompt: { readonly name: string; readonly details: { readonly missingOIDCScope?: readonly string[] } }
  readonly session?: { readonly accountId: string }
}

export interface BareLogin {
  serves(url: string): boolean
  handle(request: IncomingMessage, response: ServerResponse): Promise<void>
}

/** The least that sends users of the library to another provider and asks them for consent: PKCE, nonce, a verified ID token. No store, no log. */
export async function createBareLogin(provider: Provider, issuer: string, upstream: BareUpstream): Promise<BareLogin> {
  const discovered = await send(`${upstream.issuer}/.well-known/openid-configuration`)
  const { authorization_endpoint, token_endpoint, jwks_uri } = (await discovered.body.json()) as Record<string, string>
  const keys = createRemoteJWKSet(new URL(jwks_uri ?? ''))
  const redirectUri = `${issuer}/oauth/callback`
  const basic = Buffer.from(`${upstream.clientId}:${upstream.clientSecret}`).toString('base64')
  const pending = new Map<string, { readonly nonce: string; readonly verifier: string }>()
  const random = () => randomBytes(32).toString('base64url')

  function start(response: ServerResponse): void {
    const [state, nonce, verifier] = [random(), random(), random()]
    pending.set(state, { nonce, verifier })
    const query = new URLSearchParams({
      ...{ response_type: 'code', client_id: upstream.clientId, redirect_uri: redirectUri, scope: 'openid', state, nonce },
      ...{ code_challenge: createHash('sha256').update(verifier).digest('base64url'), code_challenge_method: 'S256' },
    })
    response.writeHead(303, { location: `${authorization_endpoint}?${query}` }).end()
  }

  async function returned(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const query = new URL(request.url ?? '', issuer).searchParams
    const attempt = pending.get(query.get('state') ?? '')
    if (attempt === undefined) return void response.writeHead(400).end()
    pending.delete(query.get('state') ?? '')
    const form = {
      grant_type: 'authorization_code',
      code: query.get('code') ?? '',
      redirect_uri: redirectUri,
      code_verifier: attempt.verifier,
    }
    const headers = { authorization: `Basic ${basic}`, 'content-type': 'application/x-www-form-urlencoded' }
    const answer = await send(token_endpoint ?? '', { method: 'POST', headers, body: new URLSearchParams(form).toString() })
    const { id_token: idToken } = (await answer.body.json()) as { id_token: string }
    const { payload } = await jwtVerify(idToken, keys, { issuer: upstream.issuer, audience: upstream.clientId })
    if (payload['nonce'] !== attempt.nonce) throw new Error('another nonce')
    await provider.interactionFinished(request, response, { login: { accountId: payload.sub } })
  }

  async function interaction(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const details = (await provider.interactionDetails(request, response)) as Interaction
    if (details.prompt.name === 'login') return start(response)
    if (request.method !== 'POST') {
      const page = `<form method="post" action="${request.url}"><button name="decision" value="allow">Allow</button></form>`
      return void response.writeHead(200, { 'content-type': 'text/html' }).end(page)
    }
    request.resume()
    const grant = new provider.Grant({ accountId: details.session?.accountId ?? '', clientId: String(details.params['client_id']) })
    grant.addOIDCScope((details.prompt.details.missingOIDCScope ?? []).join(' '))
    await provider.interactionFinished(request, response, { consent: { grantId: await grant.save() } })
  }

  return {
    serves: (url) => url.startsWith('/interaction/') || url.startsWith('/oauth/callback'),
    async handle(request, response) {
      try {
        await (request.url?.startsWith('/oauth/callback') ? returned(request, response) : interaction(request, response))
      } catch (error) {
        response.writeHead(500).end(String(error))
      }
    },
  }
}
