import { vetUrl } from '@thv/http/outbound/address-policy'
import { configHash } from '@thv/kernel/config-hash'
import type { ConditionUpdate } from '@thv/kube'
import { compact } from '@thv/resources/schema/normalize'
import type { CanonicalOidcConfig } from '@thv/resources/shared/oidc-config'
import { WorkloadCondition, WorkloadReason } from '@thv/resources/shared/workload-conditions'
import type { OidcConfig } from '@thv/runconfig/policy-config'
import { type Blocker, type EnvVar, secretVariable } from '../../deployment/contribution.ts'
import type { Lookup } from '../../references/lookup.ts'
import { missingSecretKey } from '../../references/secret-key.ts'
import { type Contribution, contributes, nothing, type Resolved } from '../contribution.ts'
import { type MountedCaBundle, mountCaBundle } from './ca-bundle.ts'
import { clusterAuth } from './cluster-auth.ts'
import { type OidcSettings, readOidcSettings } from './oidc-settings.ts'

export interface OidcArgs {
  readonly oidcConfig: CanonicalOidcConfig | undefined
  /** Of the workload. */
  readonly name: string
  readonly namespace: string
  /** Full name of the Service that clients reach the proxy by, such as `mcp-x-proxy.ns.svc.cluster.local`. */
  readonly serviceHost: string
  readonly proxyPort: number
  readonly clusterDomain?: string
  readonly lookup: Pick<Lookup, 'configMap' | 'secret' | 'externalAuthConfig'>
  /** For certificates that have run out. */
  readonly now?: number
}

export const OIDC_CLIENT_SECRET_VARIABLE = 'TOOLHIVE_OIDC_CLIENT_SECRET'
/** Read by no program: its change replaces the pods when something changed that the RunConfig only points to. */
export const OIDC_CONFIG_HASH_VARIABLE = 'THV_OIDC_CONFIG_HASH'

/** How clients prove who they are. Whatever is wrong blocks: a proxy with half of it would let in whom it should not. */
export function resolveOidc(args: OidcArgs): Resolved {
  const { oidcConfig, lookup, now } = args
  if (oidcConfig === undefined) return nothing
  const resourceUrl = oidcConfig.resourceUrl ?? `http://${args.serviceHost}:${args.proxyPort}`
  const read = readOidcSettings(oidcConfig, { ...args, resourceUrl })
  if (!read.ok) return read
  const { settings } = read

  const bundle = oidcCaBundle(settings, { lookup, now })
  const blockers = [...urlBlockers(settings, resourceUrl), ...fileBlockers(settings), ...secretBlockers(settings, lookup)]
  if (bundle?.ok === false) blockers.push(bundle.blocker)
  const conditions = [...(bundle?.ok ? [bundle.condition] : []), ...plaintextWarning(settings, args.name)]
  if (blockers.length > 0) return { ok: false, blockers, contribution: { conditions } }

  const file = bundle?.ok ? bundle.file : undefined
  const cluster = clusterAuth(settings, args.clusterDomain)
  const oidc: OidcConfig = compact({
    issuer: settings.isThisCluster ? undefined : settings.issuer,
    this_cluster: settings.isThisCluster,
    audience: settings.audience || undefined,
    required_subject: settings.requiredSubject,
    jwks_url: settings.jwksUrl || undefined,
    introspection_url: settings.introspectionUrl || undefined,
    client_id: settings.clientId || undefined,
    client_secret: settings.clientSecret?.from === 'text' ? settings.clientSecret.value : undefined,
    ca_cert_path: file?.path ?? (settings.caBundlePath || cluster?.caPath),
    auth_token_file: settings.authTokenPath || cluster?.tokenPath,
    allow_private_ip: settings.allowPrivateIp,
    jwks_allow_private_ip: settings.jwksAllowPrivateIp,
    insecure_allow_http: settings.insecureAllowHttp,
    resource_url: oidcConfig.resourceUrl,
    scopes: settings.scopes,
    forward_token: oidcConfig.forwardToken === true,
  })
  const secret = clientSecretPart(settings)
  const pointedTo = compact({ ca: file?.id, secret: secret.version })
  // Without the secret itself: what is hashed can be guessed at.
  const hash = configHash({ ...oidc, client_secret: undefined, ...pointedTo })
  return contributes({
    runConfig: compact({ oidc_config: oidc, thv_ca_bundle: oidc.ca_cert_path, jwks_auth_token_file: oidc.auth_token_file }),
    env: [...secret.env, ...(Object.keys(pointedTo).length > 0 ? [{ name: OIDC_CONFIG_HASH_VARIABLE, value: configHash(pointedTo) }] : [])],
    volumes: [...(file?.volumes ?? []), ...(cluster?.volumes ?? [])],
    volumeMounts: [...(file?.volumeMounts ?? []), ...(cluster?.volumeMounts ?? [])],
    secrets: secret.secrets,
    conditions,
    status: { oidcConfigHash: hash },
  })
}

function oidcCaBundle(
  { caBundleRef: ref, at }: OidcSettings,
  { lookup, now }: Pick<OidcArgs, 'lookup'> & { now: number | undefined },
): MountedCaBundle | undefined {
  if (ref === undefined) return undefined
  const { name } = ref.configMapRef
  return mountCaBundle({
    ref,
    field: at('caBundleRef'),
    volumeName: `oidc-ca-bundle-${name}`,
    folder: `/config/certs/${name}`,
    lookup,
    now,
  })
}

interface ClientSecretPart extends Required<Pick<Contribution, 'secrets'>> {
  readonly env: readonly EnvVar[]
  readonly version?: string
}

function clientSecretPart({ clientSecret }: OidcSettings): ClientSecretPart {
  switch (clientSecret?.from) {
    case 'secret':
      return { env: [secretVariable(OIDC_CLIENT_SECRET_VARIABLE, clientSecret.ref)], secrets: [clientSecret.ref.name] }
    case 'configMap':
      return {
        env: [{ name: OIDC_CLIENT_SECRET_VARIABLE, valueFrom: { configMapKeyRef: clientSecret.ref } }],
        secrets: [],
        version: clientSecret.version,
      }
    default:
      return { env: [], secrets: [] }
  }
}

/**
 * One that is written in clear has to be given to the proxy somehow. A ConfigMap of one key holds it once; a variable would repeat it in
 * the Deployment, in each of its old ReplicaSets, in every pod and in what the node knows of its containers.
 */
function plaintextWarning({ clientSecret, at }: OidcSettings, name: string): ConditionUpdate[] {
  if (clientSecret === undefined || clientSecret.from === 'secret') return []
  const isText = clientSecret.from === 'text'
  const place = isText ? `this object or ConfigMap ${name}-runconfig` : 'it'
  const instead = isText ? at('clientSecretRef') : 'spec.oidcConfig.inline.clientSecretRef'
  const message = `${at('clientSecret')} is in plain text for everyone who may read ${place}: put it into a Secret and name that in ${instead}`
  return [{ type: WorkloadCondition.PlaintextSecret, status: 'True', reason: WorkloadReason.ClientSecretInPlainText, message }]
}

function urlBlockers(settings: OidcSettings, resourceUrl: string): Blocker[] {
  const { at, issuer, jwksUrl, introspectionUrl } = settings
  const blockers: Blocker[] = []
  const check = (reason: string, field: string, url: string, rules: { mayHaveQuery?: boolean; mayBeHttp?: boolean } = {}) => {
    const problem = urlProblem(url, { mayHaveQuery: true, mayBeHttp: settings.insecureAllowHttp, ...rules })
    if (problem === 'insecure') {
      const insecure = reason === WorkloadReason.OIDCIssuerInvalid ? WorkloadReason.OIDCIssuerInsecure : reason
      blockers.push(invalid(insecure, `${field} must begin with https://: over http anybody on the way could put in keys of their own`))
    } else if (problem !== undefined) blockers.push(invalid(reason, `${field} cannot be used: ${problem}`))
  }
  check(WorkloadReason.OIDCIssuerInvalid, at('issuer'), issuer, { mayHaveQuery: false })
  if (jwksUrl) check(WorkloadReason.JWKSURLInvalid, at('jwksUrl'), jwksUrl)
  if (introspectionUrl) check(WorkloadReason.IntrospectionURLInvalid, at('introspectionUrl'), introspectionUrl)
  check(WorkloadReason.ResourceURLInvalid, 'spec.oidcConfig.resourceUrl', resourceUrl, { mayBeHttp: true })
  return blockers
}

function urlProblem(text: string, rules: { mayHaveQuery: boolean; mayBeHttp: boolean }): string | undefined {
  // The URL parser drops line breaks and spaces at the ends; later comparisons of the texts do not.
  if (/\s/.test(text)) return 'it contains white space'
  const verdict = vetUrl(text, undefined)
  if (!verdict.ok) return verdict.message
  const url = new URL(text)
  if (url.hash !== '' || text.endsWith('#')) return 'it must not have a fragment'
  if (!rules.mayHaveQuery && text.includes('?')) return 'it must not have a query'
  return url.protocol === 'http:' && !rules.mayBeHttp ? 'insecure' : undefined
}

function fileBlockers({ at, caBundlePath, authTokenPath }: OidcSettings): Blocker[] {
  const paths = { thvCABundlePath: caBundlePath, jwksAuthTokenPath: authTokenPath }
  return Object.entries(paths)
    .filter(([, path]) => path && !path.startsWith('/'))
    .map(([member]) =>
      invalid(WorkloadReason.InvalidSpec, `${at(member)} must be the full path of a file in the proxy container, from / on`),
    )
}

function secretBlockers({ clientSecret, at }: OidcSettings, lookup: Pick<Lookup, 'secret'>): Blocker[] {
  if (clientSecret?.from !== 'secret') return []
  const missing = missingSecretKey(lookup, clientSecret.ref, at('clientSecretRef'))
  return missing === undefined ? [] : [invalid(WorkloadReason.SecretNotFound, missing)]
}

function invalid(reason: string, message: string): Blocker {
  return { condition: WorkloadCondition.ConfigurationValid, reason, message }
}
