import { type IncomingProvider, unusable } from './incoming-provider.ts'
import type { ProviderClient } from './provider-client.ts'

const MAX_DOCUMENT_BYTES = 256 << 10

/** A provider as its discovery document describes it. */
export interface DiscoveredProvider {
  readonly issuer: string
  readonly jwksUrl: string
}

/** Where the provider's keys are: OpenID discovery first, then RFC 8414. A document of another issuer counts for nothing. */
export async function discoverProvider(
  provider: IncomingProvider,
  client: ProviderClient,
  authorization?: string,
): Promise<DiscoveredProvider> {
  const failures: unknown[] = []
  for (const url of metadataUrls(provider.issuer)) {
    try {
      const { json } = await client.json({ url, maxBytes: MAX_DOCUMENT_BYTES, authorization })
      const { issuer, jwks_uri: jwksUrl } = json
      if (typeof issuer !== 'string' || issuer === '') throw unusable(provider, `${url} names no issuer`)
      if (issuer !== provider.issuer && provider.discoversIssuer !== true)
        throw unusable(provider, `${url} is the document of another issuer`)
      if (typeof jwksUrl !== 'string') throw unusable(provider, `${url} names no jwks_uri`)
      return { issuer, jwksUrl }
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
