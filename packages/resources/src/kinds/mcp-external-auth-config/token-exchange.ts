import type { Static } from 'typebox'
import { sameIfBoth } from '../../schema/cel.ts'
import { list, obj, opt, str } from '../../schema/nodes.ts'
import { compact, type ProblemList, unify } from '../../schema/normalize.ts'
import { headerName } from '../../shared/http-header.ts'
import { secretKeyRef } from '../../shared/references.ts'

const SCOPE = '[\\x21\\x23-\\x5B\\x5D-\\x7E]+'
const text = (description: string) => str(description, { minLength: 1, maxLength: 2048 })
const tokenUrl = (description: string) => str(description, { maxLength: 2048, pattern: '^https?://[^\\s#]+$' })

/** Exchange of the caller's token for one of the backend's own (RFC 8693). */
export const tokenExchange = () =>
  obj(
    "Exchanges the caller's token for one that the backend accepts (RFC 8693).",
    {
      tokenUrl: opt(tokenUrl('Token endpoint that does the exchange.')),
      token_url: opt(tokenUrl('Another spelling of tokenUrl.')),
      audience: text('Audience of the new token.'),
      clientId: opt(text('Client id at the token endpoint.')),
      client_id: opt(text('Another spelling of clientId.')),
      clientSecretRef: opt(secretKeyRef('Client secret at the token endpoint.')),
      client_secret_ref: opt(secretKeyRef('Another spelling of clientSecretRef.')),
      scopes: opt(list('Scopes of the new token.', str('A scope.', { maxLength: 256, pattern: `^${SCOPE}$` }), { maxItems: 64 })),
      scope: opt(
        str('Another spelling of scopes: one string with a space between two scopes.', {
          maxLength: 16384,
          pattern: `^${SCOPE}( ${SCOPE})*$`,
        }),
      ),
      externalTokenHeaderName: opt(headerName('Header that carries the new token; Authorization if not given.')),
      external_token_header_name: opt(headerName('Another spelling of externalTokenHeaderName.')),
      subjectTokenType: opt(
        str("Type of the caller's token, as a short name or a URN; access_token if not given.", {
          pattern: '^(access_token|id_token|jwt|urn:ietf:params:oauth:token-type:(access_token|id_token|jwt))?$',
        }),
      ),
      subjectProviderName: opt(
        text(
          "Upstream provider whose token is exchanged instead of the caller's. Needs an embedded authorization server with that provider.",
        ),
      ),
    },
    {
      rules: [
        {
          rule: 'has(self.tokenUrl) || has(self.token_url)',
          message: 'tokenUrl must be set',
          reason: 'FieldValueRequired',
          fieldPath: '.tokenUrl',
        },
        sameIfBoth('tokenUrl', 'token_url'),
        sameIfBoth('clientId', 'client_id'),
        sameIfBoth('clientSecretRef', 'client_secret_ref'),
        sameIfBoth('externalTokenHeaderName', 'external_token_header_name'),
        {
          rule: "!has(self.scopes) || !has(self.scope) || self.scopes == self.scope.split(' ')",
          message: 'scopes and scope are two spellings of one field and must not differ: set scopes only',
        },
      ],
    },
  )

export type TokenExchange = Static<ReturnType<typeof tokenExchange>>

export interface CanonicalTokenExchange {
  /** Absent only together with a problem. */
  tokenUrl?: string
  audience: string
  clientId?: string
  clientSecretRef?: { name: string; key: string }
  scopes: string[]
  externalTokenHeaderName?: string
  subjectTokenType?: string
  subjectProviderName?: string
}

export function normaliseTokenExchange(problems: ProblemList, field: string, value: TokenExchange): CanonicalTokenExchange {
  const either = <T>(canonical: [string, T | undefined], synonym: [string, T | undefined]) =>
    unify<T>(problems, { [`${field}.${canonical[0]}`]: canonical[1], [`${field}.${synonym[0]}`]: synonym[1] })
  const tokenUrl = either(['tokenUrl', value.tokenUrl], ['token_url', value.token_url])
  if (tokenUrl === undefined) problems.add(`${field}.tokenUrl`, 'missing', `${field}.tokenUrl must be the URL of the token endpoint`)
  return compact({
    tokenUrl,
    audience: value.audience,
    clientId: either(['clientId', value.clientId], ['client_id', value.client_id]),
    clientSecretRef: either(['clientSecretRef', value.clientSecretRef], ['client_secret_ref', value.client_secret_ref]),
    scopes: either(['scopes', value.scopes], ['scope', value.scope?.split(' ')]) ?? [],
    externalTokenHeaderName: either(
      ['externalTokenHeaderName', value.externalTokenHeaderName],
      ['external_token_header_name', value.external_token_header_name],
    ),
    subjectTokenType: value.subjectTokenType === '' ? undefined : value.subjectTokenType,
    subjectProviderName: value.subjectProviderName,
  })
}
