import type { Static } from 'typebox'
import { atMostOne, type CelRule } from '../schema/cel.ts'
import { bool, list, obj, opt, str } from '../schema/nodes.ts'
import type { ProblemList } from '../schema/normalize.ts'
import { type CanonicalCABundleRef, caBundleRef, normaliseCaBundleRef } from './ca-bundle-ref.ts'
import { secretKeyRef } from './references.ts'

export const DEFAULT_OIDC_SCOPES = ['openid'] as const
export const URL_LIMITS = { minLength: 1, maxLength: 2048 }

/** OIDC settings written out: `oidcConfig.inline` of a workload, and an MCPExternalAuthConfig of type `oidc`. */
export const inlineOidc = (description: string) =>
  obj(
    description,
    {
      issuer: str('Issuer of the tokens.', URL_LIMITS),
      audience: opt(str('Audience that the token must name.', { maxLength: 1024 })),
      jwksUrl: opt(str('URL of the signing keys (JWKS). Discovered from the issuer by default.', URL_LIMITS)),
      introspectionUrl: opt(str('URL of the token introspection endpoint, for opaque tokens.', URL_LIMITS)),
      clientId: opt(str('Client id for introspection.', { maxLength: 1024 })),
      clientSecret: opt(str('Client secret in plain text. Prefer clientSecretRef.', { maxLength: 4096 })),
      clientSecretRef: opt(secretKeyRef('Secret that holds the client secret for introspection.')),
      thvCABundlePath: opt(str('File in the proxy container with CA certificates. Prefer caBundleRef.', { maxLength: 4096 })),
      caBundleRef: opt(caBundleRef()),
      jwksAuthTokenPath: opt(str('File with the bearer token for fetching the keys.', { maxLength: 4096 })),
      jwksAllowPrivateIP: opt(bool('Whether the keys may be fetched from a private address.', { default: false })),
      protectedResourceAllowPrivateIP: opt(bool('Whether the issuer and introspection may be at a private address.', { default: false })),
      insecureAllowHTTP: opt(bool('Whether the issuer may be reached without TLS. For trials only.', { default: false })),
      scopes: opt(
        list(
          'Scopes in the protected resource metadata; openid by default.',
          str('Name of a scope.', { minLength: 1, maxLength: 256, pattern: '^[^\\s]+$' }),
          { maxItems: 64 },
        ),
      ),
    },
    {
      rules: [
        atMostOne(['clientSecret', 'clientSecretRef'], 'clientSecret and clientSecretRef must not both be set: use clientSecretRef'),
        needsTls('issuer'),
        needsTls('jwksUrl'),
        atMostOne(['thvCABundlePath', 'caBundleRef'], 'thvCABundlePath and caBundleRef must not both be set: use caBundleRef'),
      ],
    },
  )

function needsTls(field: string): CelRule {
  return {
    rule: `!has(self.${field}) || self.${field}.startsWith('https://') || (self.${field}.startsWith('http://') && has(self.insecureAllowHTTP) && self.insecureAllowHTTP)`,
    message: `${field} must begin with https:// (or, for trials, set insecureAllowHTTP to true and use http://)`,
    fieldPath: `.${field}`,
  }
}

export type InlineOidc = Static<ReturnType<typeof inlineOidc>>

type InlineWithDefault = 'jwksAllowPrivateIP' | 'protectedResourceAllowPrivateIP' | 'insecureAllowHTTP' | 'scopes'
export type CanonicalInlineOidc = Omit<InlineOidc, InlineWithDefault | 'caBundleRef'> &
  Required<Pick<InlineOidc, InlineWithDefault>> & { caBundleRef?: CanonicalCABundleRef }

export function normaliseInlineOidc(problems: ProblemList, field: string, value: InlineOidc): CanonicalInlineOidc {
  const { caBundleRef: bundle, ...rest } = value
  const caBundle = normaliseCaBundleRef(problems, `${field}.caBundleRef`, bundle)
  return {
    ...rest,
    jwksAllowPrivateIP: value.jwksAllowPrivateIP ?? false,
    protectedResourceAllowPrivateIP: value.protectedResourceAllowPrivateIP ?? false,
    insecureAllowHTTP: value.insecureAllowHTTP ?? false,
    scopes: value.scopes?.length ? value.scopes : [...DEFAULT_OIDC_SCOPES],
    ...(caBundle && { caBundleRef: caBundle }),
  }
}
