import type { Static } from 'typebox'
import { atMostOne, type CelRule, unionRules } from '../schema/cel.ts'
import { bool, list, obj, oneOf, opt, str } from '../schema/nodes.ts'
import { compact, type ProblemList } from '../schema/normalize.ts'
import { type CanonicalCABundleRef, caBundleRef, normaliseCaBundleRef } from './ca-bundle-ref.ts'
import { nameRef, secretKeyRef } from './references.ts'

export const DEFAULT_KUBERNETES_ISSUER = 'https://kubernetes.default.svc'
export const DEFAULT_KUBERNETES_AUDIENCE = 'toolhive'
export const DEFAULT_OIDC_CONFIG_MAP_KEY = 'oidc.json'
export const DEFAULT_OIDC_SCOPES = ['openid'] as const

/** How clients prove who they are, for a workload that may also name an MCPExternalAuthConfig (`type: external`). */
export const oidcConfig = (description: string) =>
  obj(
    description,
    {
      type: opt(
        oneOf('Where the settings come from; configmap is the same as configMap.', [...INCOMING_TYPES, 'external'], {
          default: 'kubernetes',
        }),
      ),
      ...members(),
      external: opt(nameRef('The same as externalAuthConfigRef: the MCPExternalAuthConfig to use.')),
    },
    {
      rules: [
        ...memberRules,
        ...unionRules('type', { external: 'external' }),
        { rule: "self.type != 'external' || !has(self.resourceUrl)", message: 'resourceUrl has no effect with type external: remove it' },
      ],
    },
  )

/** For the spec of a workload: `external` is a second spelling of `externalAuthConfigRef`. */
export const externalAuthRule: CelRule = {
  rule: '!has(self.externalAuthConfigRef) || !has(self.oidcConfig) || !has(self.oidcConfig.external) || self.externalAuthConfigRef.name == self.oidcConfig.external.name',
  message:
    'externalAuthConfigRef and oidcConfig.external are two spellings of one field and must not differ: set externalAuthConfigRef only',
}

/** The same union without `external`, for a workload that has no such reference. */
export const incomingOidcConfig = (description: string) =>
  obj(
    description,
    {
      type: opt(oneOf('Where the settings come from; configmap is the same as configMap.', INCOMING_TYPES, { default: 'kubernetes' })),
      ...members(),
    },
    { rules: memberRules },
  )

const INCOMING_TYPES = ['kubernetes', 'configMap', 'configmap', 'inline'] as const

const members = () => ({
  resourceUrl: opt(str('URL under which clients reach this server; goes into the protected resource metadata.', URL_LIMITS)),
  kubernetes: opt(kubernetesOidc()),
  configMap: opt(configMapOidc()),
  inline: opt(inlineOidc()),
})

const memberRules: readonly CelRule[] = [
  { rule: "!has(self.kubernetes) || self.type == 'kubernetes'", message: 'kubernetes may only be set if type is kubernetes' },
  ...unionRules('type', { configMap: 'configMap', configmap: 'configMap', inline: 'inline' }),
]

const URL_LIMITS = { minLength: 1, maxLength: 2048 }

const kubernetesOidc = () =>
  obj('Accepts tokens of Kubernetes service accounts.', {
    serviceAccount: opt(str('Accept only this account. Without it, every account with the right audience.', { maxLength: 253 })),
    namespace: opt(
      str('Namespace of the account, by default that of this object. Alone: any account of the namespace.', { maxLength: 63 }),
    ),
    audience: opt(str('Audience that the token must name.', { minLength: 1, maxLength: 1024, default: DEFAULT_KUBERNETES_AUDIENCE })),
    issuer: opt(str('Issuer of the tokens.', { ...URL_LIMITS, default: DEFAULT_KUBERNETES_ISSUER })),
    jwksUrl: opt(str('Where the signing keys are; by default found through the issuer.', URL_LIMITS)),
    introspectionUrl: opt(str('Where opaque tokens are checked.', URL_LIMITS)),
    useClusterAuth: opt(bool("Use the pod's own CA and token to fetch the keys; allows private addresses.", { default: true })),
  })

const configMapOidc = () =>
  obj('Reads the settings from a ConfigMap.', {
    name: str('Name of the ConfigMap.', { minLength: 1, maxLength: 253 }),
    key: opt(
      str('Key of a JSON document with the settings; flat keys of the ConfigMap override its members.', {
        minLength: 1,
        maxLength: 253,
        default: DEFAULT_OIDC_CONFIG_MAP_KEY,
      }),
    ),
    caBundleRef: opt(caBundleRef()),
  })

const inlineOidc = () =>
  obj(
    'The settings themselves.',
    {
      issuer: str('Issuer of the tokens.', URL_LIMITS),
      audience: opt(str('Audience that the token must name.', { maxLength: 1024 })),
      jwksUrl: opt(str('Where the signing keys are; by default found through the issuer.', URL_LIMITS)),
      introspectionUrl: opt(str('Where opaque tokens are checked.', URL_LIMITS)),
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

export type OidcConfig = Static<ReturnType<typeof oidcConfig>>
type KubernetesOidc = NonNullable<OidcConfig['kubernetes']>
type InlineOidc = NonNullable<OidcConfig['inline']>

interface WithResourceUrl {
  resourceUrl?: string
}

export type CanonicalOidcConfig = WithResourceUrl &
  (
    | { type: 'kubernetes'; kubernetes: CanonicalKubernetesOidc }
    | { type: 'configMap'; configMap: { name: string; key: string; caBundleRef?: CanonicalCABundleRef } }
    | { type: 'inline'; inline: CanonicalInlineOidc }
  )

export type CanonicalKubernetesOidc = Omit<KubernetesOidc, 'audience' | 'issuer' | 'useClusterAuth'> &
  Required<Pick<KubernetesOidc, 'audience' | 'issuer' | 'useClusterAuth'>>

type InlineWithDefault = 'jwksAllowPrivateIP' | 'protectedResourceAllowPrivateIP' | 'insecureAllowHTTP' | 'scopes'
export type CanonicalInlineOidc = Omit<InlineOidc, InlineWithDefault | 'caBundleRef'> &
  Required<Pick<InlineOidc, InlineWithDefault>> & { caBundleRef?: CanonicalCABundleRef }

export interface NormalisedOidc {
  oidcConfig: CanonicalOidcConfig | undefined
  /** Name of the MCPExternalAuthConfig, if that is what the field stands for. */
  external: string | undefined
}

/**
 * A union whose member is missing is a problem, and so is one of an unknown type: they count as absent, and whoever sees the problem
 * must not start an open proxy.
 */
export function normaliseOidcConfig(problems: ProblemList, field: string, value: OidcConfig | undefined): NormalisedOidc {
  if (!value) return { oidcConfig: undefined, external: undefined }
  if (value.type === 'external' && value.external) return { oidcConfig: undefined, external: value.external.name }
  const oidcConfig = memberOf(problems, field, value)
  if (!oidcConfig) problems.add(field, 'missing', `${field} must set the member that belongs to its type ${value.type}`)
  return { oidcConfig, external: undefined }
}

function memberOf(problems: ProblemList, field: string, value: OidcConfig): CanonicalOidcConfig | undefined {
  const { type = 'kubernetes', configMap, inline } = value
  const common: WithResourceUrl = compact({ resourceUrl: value.resourceUrl })
  if (type === 'kubernetes') return { ...common, type, kubernetes: canonicalKubernetes(value.kubernetes ?? {}) }
  if ((type === 'configMap' || type === 'configmap') && configMap) {
    const caBundle = normaliseCaBundleRef(problems, `${field}.configMap.caBundleRef`, configMap.caBundleRef)
    const settings = { name: configMap.name, key: configMap.key ?? DEFAULT_OIDC_CONFIG_MAP_KEY }
    return { ...common, type: 'configMap', configMap: caBundle ? { ...settings, caBundleRef: caBundle } : settings }
  }
  if (type === 'inline' && inline) {
    return { ...common, type, inline: canonicalInline(problems, `${field}.inline`, inline) }
  }
  return undefined
}

function canonicalKubernetes(value: KubernetesOidc): CanonicalKubernetesOidc {
  return {
    ...value,
    audience: value.audience ?? DEFAULT_KUBERNETES_AUDIENCE,
    issuer: value.issuer ?? DEFAULT_KUBERNETES_ISSUER,
    useClusterAuth: value.useClusterAuth ?? true,
  }
}

function canonicalInline(problems: ProblemList, field: string, value: InlineOidc): CanonicalInlineOidc {
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
