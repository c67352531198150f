import { createPublicKey, verify } from 'node:crypto'
import type { Provider, ProviderContext } from 'oidc-provider'

export const TOKEN_EXCHANGE_GRANT = 'urn:ietf:params:oauth:grant-type:token-exchange'

const PARAMETERS = ['audience', 'scope', 'resource', 'requested_token_type', 'subject_token', 'subject_token_type']
const JWT_TYPES = ['urn:ietf:params:oauth:token-type:access_token', 'urn:ietf:params:oauth:token-type:jwt']

/** The part of the provider that issues tokens, beside its declared types. */
interface Issuing {
  readonly ClientCredentials: new (of: {
    client: object
    scope?: string | undefined
  }) => { resourceServer: object; save(): Promise<string> }
  readonly ResourceServer: new (identifier: string, info: object) => object
}

/** A token that an exchange gave out. */
export interface ExchangedToken {
  readonly subject: string
  readonly audience: string | undefined
  readonly scope: string | undefined
}

export interface TokenExchangeOptions {
  readonly issuer: string
  /** Public and private members of the keys that tokens are signed with. */
  readonly keys: () => readonly Readonly<Record<string, unknown>>[]
  /** Makes the next token of this request have that subject and audience. */
  readonly wish: (context: ProviderContext, wish: { claims: { sub: string }; audience: string }) => void
  readonly onExchanged: (token: ExchangedToken) => void
}

/** RFC 8693: a token of this provider for another one of the same user, for another audience. */
export function addTokenExchange(provider: Provider, { issuer, keys, wish, onExchanged }: TokenExchangeOptions): void {
  const { ClientCredentials, ResourceServer } = provider as unknown as Issuing
  provider.registerGrantType(
    TOKEN_EXCHANGE_GRANT,
    async (ctx) => {
      const { client = {}, params = {} } = ctx.oidc
      const { subject_token: subjectToken = '', subject_token_type: type = '', audience, scope } = params
      if (!JWT_TYPES.includes(type)) return refuse(ctx, 'invalid_request', 'subject_token_type is not supported')
      const claims = claimsOf(subjectToken, { issuer, keys: keys() })
      if (claims === undefined) return refuse(ctx, 'invalid_grant', 'subject_token is not a token of this provider')
      const subject = String(claims['sub'])
      const target = audience ?? 'tests'
      wish(ctx, { claims: { sub: subject }, audience: target })
      const token = new ClientCredentials({ client, scope })
      const info = { scope: scope ?? '', audience: target, accessTokenFormat: 'jwt', accessTokenTTL: 600, jwt: { sign: { alg: 'ES256' } } }
      token.resourceServer = new ResourceServer('urn:thv:tests', info)
      const value = await token.save()
      onExchanged({ subject, audience, scope })
      const issued = { access_token: value, issued_token_type: JWT_TYPES[0], token_type: 'Bearer', expires_in: 600 }
      ctx.body = { ...issued, ...(scope !== undefined && { scope }) }
    },
    PARAMETERS,
  )
}

function refuse(ctx: ProviderContext, error: string, description: string): void {
  ctx.status = 400
  ctx.body = { error, error_description: description }
}

/** Undefined: not signed by one of the keys, of another issuer, or over. */
function claimsOf(
  token: string,
  { issuer, keys }: { issuer: string; keys: readonly Readonly<Record<string, unknown>>[] },
): Record<string, unknown> | undefined {
  const [header = '', payload = '', signature = ''] = token.split('.')
  const signed = (jwk: Readonly<Record<string, unknown>>) => {
    const { d: _, ...open } = jwk
    const key = createPublicKey({ key: open as never, format: 'jwk' })
    return verify('sha256', Buffer.from(`${header}.${payload}`), { key, dsaEncoding: 'ieee-p1363' }, Buffer.from(signature, 'base64url'))
  }
  if (!keys.some(signed)) return undefined
  const claims = JSON.parse(Buffer.from(payload, 'base64url').toString()) as Record<string, unknown>
  return claims['iss'] === issuer && Number(claims['exp']) > Date.now() / 1_000 ? claims : undefined
}
