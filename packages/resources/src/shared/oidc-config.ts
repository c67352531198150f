import type { Static } from 'typebox'
import { type CelRule, unionRules } from '../schema/cel.ts'
import { bool, obj, oneOf, opt, str } from '../schema/nodes.ts'
import { compact, type ProblemList } from '../schema/normalize.ts'
import { type CanonicalCABundleRef, caBundleRef, normaliseCaBundleRef } from './ca-bundle-ref.ts'
import { type CanonicalInlineOidc, inlineOidc, normaliseInlineOidc, URL_LIMITS } from './inline-oidc.ts'
import { nameRef } from './references.ts'

export const DEFAULT_KUBERNETES_ISSUER = 'https://kubernetes.default.svc'
export const DEFAULT_KUBERNETES_AUDIENCE = 'toolhive'
export const DEFAULT_OIDC_CONFIG_MAP_KEY = 'oidc.json'

/** How clients authenticate to a workload. `external` shares the settings of one MCPExternalAuthConfig among workloads. */
export const oidcConfig = (description: string) => obj(description, workloadMembers(), { rules: workloadRules })

/** The same for an MCPServer, which may trust its own server with the tokens of its clients. */
export const serverOidcConfig = (description: string) =>
  obj(
    description,
    {
      ...workloadMembers(),
      forwardToken: opt(
        bool('Pass the Authorization header of clients on to the server. Otherwise the server never sees their tokens.', {
          default: false,
        }),
      ),
    },
    { rules: workloadRules },
  )

const workloadMembers = () => ({
  type: opt(
    oneOf('Where the settings come from; configmap is the same as configMap.', [...INCOMING_TYPES, 'external'], {
      default: 'kubernetes',
    }),
  ),
  ...members(),
  external: opt(
    nameRef('MCPExternalAuthConfig of type oidc or embeddedAuthServer that says how clients authenticate. Other types are refused.'),
  ),
})

/** The same union without `external`, for a VirtualMCPServer. */
export const incomingOidcConfig = (description: string) =>
  obj(
    description,
    {
      type: opt(oneOf('Source of the settings; configmap is the same as configMap.', INCOMING_TYPES, { default: 'kubernetes' })),
      ...members(),
    },
    { rules: memberRules },
  )

const INCOMING_TYPES = ['kubernetes', 'configMap', 'configmap', 'inline'] as const

const members = () => ({
  resourceUrl: opt(
    str(
      'URL under which clients reach this server, for the protected resource metadata; by default the address that each request came to. Without an audience, tokens must be made for this URL.',
      URL_LIMITS,
    ),
  ),
  kubernetes: opt(kubernetesOidc()),
  configMap: opt(configMapOidc()),
  inline: opt(inlineOidc('Inline settings.')),
})

const memberRules: readonly CelRule[] = [
  { rule: "!has(self.kubernetes) || self.type == 'kubernetes'", message: 'kubernetes may only be set if type is kubernetes' },
  ...unionRules('type', { configMap: 'configMap', configmap: 'configMap', inline: 'inline' }),
]

const workloadRules: readonly CelRule[] = [...memberRules, ...unionRules('type', { external: 'external' })]

const kubernetesOidc = () =>
  obj('Accepts tokens of Kubernetes service accounts.', {
    serviceAccount: opt(str('Accept only this account. Without it, every account with the right audience.', { maxLength: 253 })),
    namespace: opt(
      str('Namespace of the account, by default that of this object. Alone: any account of the namespace.', { maxLength: 63 }),
    ),
    audience: opt(str('Audience that the token must name.', { minLength: 1, maxLength: 1024, default: DEFAULT_KUBERNETES_AUDIENCE })),
    issuer: opt(
      str('Issuer of the tokens. The default stands for this cluster, whatever the issuer of its tokens is called.', {
        ...URL_LIMITS,
        default: DEFAULT_KUBERNETES_ISSUER,
      }),
    ),
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

export type OidcConfig = Static<ReturnType<typeof serverOidcConfig>>
type KubernetesOidc = NonNullable<OidcConfig['kubernetes']>

/** Members that belong to one workload, whatever the source of its settings. */
interface WorkloadMembers {
  resourceUrl?: string
  forwardToken?: true
}

export type CanonicalOidcConfig = WorkloadMembers &
  (
    | { type: 'kubernetes'; kubernetes: CanonicalKubernetesOidc }
    | { type: 'configMap'; configMap: { name: string; key: string; caBundleRef?: CanonicalCABundleRef } }
    | { type: 'inline'; inline: CanonicalInlineOidc }
    | { type: 'external'; external: { name: string } }
  )

export type CanonicalKubernetesOidc = Omit<KubernetesOidc, 'audience' | 'issuer' | 'useClusterAuth'> &
  Required<Pick<KubernetesOidc, 'audience' | 'issuer' | 'useClusterAuth'>>

/**
 * A union whose member is missing is a problem, and so is one of an unknown type: they count as absent, and a caller that sees the problem
 * must not start an open proxy.
 */
export function normaliseOidcConfig(problems: ProblemList, field: string, value: OidcConfig | undefined): CanonicalOidcConfig | undefined {
  if (!value) return undefined
  const oidcConfig = memberOf(problems, field, value)
  if (!oidcConfig) problems.add(field, 'missing', `${field} must set the member that belongs to its type ${value.type}`)
  return oidcConfig
}

function memberOf(problems: ProblemList, field: string, value: OidcConfig): CanonicalOidcConfig | undefined {
  const { type = 'kubernetes', configMap, inline, external } = value
  const common: WorkloadMembers = compact({
    resourceUrl: value.resourceUrl,
    forwardToken: value.forwardToken === true ? (true as const) : undefined,
  })
  if (type === 'kubernetes') return { ...common, type, kubernetes: canonicalKubernetes(value.kubernetes ?? {}) }
  if ((type === 'configMap' || type === 'configmap') && configMap) {
    const caBundle = normaliseCaBundleRef(problems, `${field}.configMap.caBundleRef`, configMap.caBundleRef)
    const settings = { name: configMap.name, key: configMap.key ?? DEFAULT_OIDC_CONFIG_MAP_KEY }
    return { ...common, type: 'configMap', configMap: caBundle ? { ...settings, caBundleRef: caBundle } : settings }
  }
  if (type === 'inline' && inline) {
    return { ...common, type, inline: normaliseInlineOidc(problems, `${field}.inline`, inline) }
  }
  if (type === 'external' && external) return { ...common, type, external: { name: external.name } }
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
