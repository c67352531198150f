import type { Static } from 'typebox'
import { list, obj, opt, str } from '../../schema/nodes.ts'
import { compact } from '../../schema/normalize.ts'
import { secretKeyRef } from '../../shared/references.ts'

const SCOPE = '^[\\x21\\x23-\\x5B\\x5D-\\x7E]+$'
const url = (description: string) => str(description, { maxLength: 2048, pattern: '^https?://[^\\s#]+$' })

/** A token of the proxy itself, the same for all callers (RFC 6749 section 4.4). */
export const clientCredentials = () =>
  obj(
    'Gets a token with the credentials of an OAuth client, the same for all callers (RFC 6749 section 4.4).',
    {
      clientId: str('Client id at the token endpoint.', { minLength: 1, maxLength: 2048 }),
      clientSecretRef: secretKeyRef('Client secret at the token endpoint.'),
      tokenUrl: opt(url('Token endpoint. Set this or issuer.')),
      issuer: opt(url('Issuer whose metadata names the token endpoint. Set this or tokenUrl.')),
      scopes: opt(list('Scopes of the token.', str('A scope.', { maxLength: 256, pattern: SCOPE }), { maxItems: 64 })),
      resource: opt(str('Resource that the token is for (RFC 8707).', { minLength: 1, maxLength: 2048 })),
    },
    { rules: [{ rule: 'has(self.tokenUrl) != has(self.issuer)', message: 'exactly one of tokenUrl and issuer must be set' }] },
  )

export type ClientCredentials = Static<ReturnType<typeof clientCredentials>>

export interface CanonicalClientCredentials {
  clientId: string
  clientSecretRef: { name: string; key: string }
  tokenUrl?: string
  issuer?: string
  scopes: string[]
  resource?: string
}

export function normaliseClientCredentials(value: ClientCredentials): CanonicalClientCredentials {
  const { clientId, clientSecretRef, tokenUrl, issuer, scopes = [], resource } = value
  return compact({ clientId, clientSecretRef, tokenUrl, issuer, scopes, resource })
}
