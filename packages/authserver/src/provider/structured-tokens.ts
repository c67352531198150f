import type { Clock } from '@thv/kernel/clock'
import { isObject } from '@thv/kernel/json'
import type { AuthStore } from '@thv/store/auth/auth-store'
import type { Provider, ProviderContext } from 'oidc-provider'
import { ownClaims } from '../exchange/own-tokens.ts'
import type { SigningKeys } from '../keys/signing-keys.ts'

export interface StructuredTokenOptions {
  readonly keys: SigningKeys
  readonly store: AuthStore
  readonly issuer: string
  readonly familyMs: number
  readonly clock: Clock
  readonly onRevoked: (client: string | undefined) => void
}

interface OwnToken {
  readonly claims: Readonly<Record<string, unknown>>
  readonly family: string
}

/**
 * Access tokens of this server are JWTs, which the library neither introspects nor revokes. This does both, after the library has
 * authenticated the client.
 */
export function addStructuredTokens(provider: Provider, options: StructuredTokenOptions): void {
  provider.use(async (ctx, next) => {
    await next()
    const isIntrospection = ctx.path === '/oauth/introspect'
    if ((!isIntrospection && ctx.path !== '/oauth/revoke') || ctx.req.method !== 'POST') return
    const { client, params } = ctx.oidc
    const token = params?.['token']
    if (client === undefined || !isAuthenticated(ctx)) return
    if (isIntrospection && client.clientAuthMethod === 'none')
      return answer(ctx, 401, { error: 'invalid_client', error_description: 'client authentication is required' })
    if (token === undefined || token.split('.').length !== 3) return
    const own = await verified(token, options)
    if (isIntrospection) answer(ctx, 200, own === undefined ? { active: false } : { active: true, ...own.claims, token_type: 'Bearer' })
    else {
      // RFC 7009 §2.2: an invalid token is not an error.
      if (own?.claims['client_id'] === client.clientId) {
        // Its family is a login of the user, which belongs to another client.
        if ('act' in own.claims) return answer(ctx, 400, { error: 'unsupported_token_type', error_description: 'the token was exchanged' })
        await options.store.revokeFamily(own.family, options.familyMs)
        options.onRevoked(client.clientName)
      }
      answer(ctx, 200, '')
    }
  })
}

/** The library knows the client before it has looked at its secret: only its own answer says that the secret was right. */
function isAuthenticated({ status, body }: ProviderContext): boolean {
  if (status === 200) return true
  return status === 400 && isObject(body) && body['error'] === 'unsupported_token_type'
}

/** Rejects with `store_unavailable`: no answer may claim that a token was revoked, or is not active, when the store could not be asked. */
async function verified(token: string, { keys, store, issuer, clock }: StructuredTokenOptions): Promise<OwnToken | undefined> {
  const claims = await ownClaims(token, { issuer, keys, clock })
  const family = claims?.['tsid']
  if (claims === undefined || typeof family !== 'string' || (await store.isRevoked(family))) return undefined
  return { claims, family }
}

function answer(ctx: ProviderContext, status: number, body: unknown): void {
  ctx.status = status
  ctx.body = body
}
