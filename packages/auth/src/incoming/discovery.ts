import { type IncomingProvider, unusable } from './incoming-provider.ts'
import type { ProviderClient } from './provider-client.ts'

const MAX_DOCUMENT_BYTES = 256 << 10

/** Where the provider's keys are: OpenID discovery first, then RFC 8414. A document of another issuer counts for nothing. */
export async function discoverJwksUrl(provider: IncomingProvider, client: ProviderClient, authorization?: string): Promise<string> {
  const failures: unknown[] = []
  for (const url of metadataUrls(provider.issuer)) {
    try {
      const { json } = await client.json({ url, maxBytes: MAX_DOCUMENT_BYTES, authorization })
      if (json['issuer'] !== provider.issuer) throw unusable(provider, `${url} is the document of another issuer`)
      if (typeof json['jwks_uri'] !== 'string') throw unusable(provider, `${url} names no jwks_uri`)
      return json['jwks_uri']
    } catch (error) {
      failures.push(error)
    }
  }
  throw failures[0]
}

/** OpenID appends to the issuer's path, RFC 8414 puts its part in front of it. */
export function metadataUrls(issuer: string): string[] {
  const base = issuer.replace(/\/$/, '')
  const url = URL.parse(base)
  if (url === null) return [`${base}/.well-known/openid-configuration`]
  const path = url.pathname === '/' ? '' : url.pathname
  return [`${base}/.well-known/openid-configuration`, `${url.origin}/.well-known/oauth-authorization-server${path}`]
}
