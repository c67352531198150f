import { readAuthzDocument } from '@thv/authz/load/authz-document'
import type { PolicyChecker } from '@thv/authz/policy-syntax'
import { VirtualMCPServerCondition as Condition, VirtualMCPServerReason as Reason } from '@thv/resources/kinds/virtual-mcp-server/constants'
import type { CanonicalIncomingAuth } from '@thv/resources/kinds/virtual-mcp-server/incoming-auth-normalise'
import { compact } from '@thv/resources/schema/normalize'
import { WorkloadCondition } from '@thv/resources/shared/workload-conditions'
import type { OidcConfig } from '@thv/runconfig/policy-config'
import type { AuthzFileConfig, IncomingAuthConfig, OidcClientConfig } from '@thv/vmcpconfig/vmcp-config'
import type { Blocker, Contribution } from '../../../deployment/contribution.ts'
import type { Resolved } from '../../../proxy/contribution.ts'
import { resolveAuthz } from '../../../proxy/resolve/authz.ts'
import { OIDC_CLIENT_SECRET_VARIABLE, resolveOidc } from '../../../proxy/resolve/oidc.ts'
import type { Lookup } from '../../../references/lookup.ts'
import { VMCP_PORT } from '../objects/deployment.ts'

export interface IncomingAuth {
  readonly document: IncomingAuthConfig
  readonly contributions: readonly Contribution[]
  readonly blockers: readonly Blocker[]
  /** Parts of the spec that the file cannot say. */
  readonly unsupported: readonly { readonly field: string; readonly middleware: string }[]
}

interface Deps {
  readonly name: string
  readonly namespace: string
  /** Full name of the Service. */
  readonly serviceHost: string
  readonly clusterDomain: string
  readonly lookup: Lookup
  readonly checkPolicies: PolicyChecker
  readonly now: number
}

/** How clients authenticate and what they may do, by the same resolvers as for proxies. Pure. */
export function incomingAuthOf(auth: CanonicalIncomingAuth, deps: Deps): IncomingAuth {
  const oidc = auth.type === 'oidc' ? resolveOidc({ ...deps, oidcConfig: auth.oidcConfig, proxyPort: VMCP_PORT }) : undefined
  const authz = resolveAuthz({ ...deps, kind: 'VirtualMCPServer', authzConfig: auth.authzConfig })
  const blockers = [oidc, authz].flatMap((part) => (part === undefined || part.ok ? [] : part.blockers.map(inOwnWords)))
  const config = oidc?.contribution?.runConfig?.oidc_config
  const policies = policiesOf(authz)
  const document = compact({ type: auth.type, oidc: config && oidcDocument(config, oidc), authz: policies.document })
  return {
    document,
    contributions: [kept(oidc?.contribution), { status: authz.contribution?.status ?? {} }],
    blockers,
    unsupported: [...(config ? unsupportedOidc(config) : []), ...policies.unsupported],
  }
}

/** The provider whose claims the policies see. An authorization server that has problems of its own has no providers, and is what is reported. Pure. */
export function withPrimaryProvider(
  incoming: IncomingAuth,
  server: { readonly primaryUpstreamProvider?: string } | undefined,
  isUsable: boolean,
): IncomingAuth {
  const { authz } = incoming.document
  if (authz === undefined || server === undefined) return incoming
  const primaryUpstreamProvider = isUsable ? (server.primaryUpstreamProvider ?? authz.primaryUpstreamProvider) : undefined
  return { ...incoming, document: { ...incoming.document, authz: compact({ ...authz, primaryUpstreamProvider }) } }
}

const AUTHZ_REASONS: ReadonlySet<string> = new Set([Reason.AuthzConfigMapNotFound, Reason.AuthzConfigMapInvalid])

function inOwnWords({ reason, message }: Blocker): Blocker {
  return {
    condition: Condition.AuthConfigured,
    reason: AUTHZ_REASONS.has(reason) ? reason : Reason.AuthInvalid,
    message: message.replaceAll(/\bspec\.(oidcConfig|authzConfig)/g, 'spec.incomingAuth.$1'),
  }
}

/** The policies are in the file itself, so nothing of them is mounted; other conditions are those of proxies. */
function kept(contribution: Resolved['contribution']): Contribution {
  const { env = [], volumes = [], volumeMounts = [], secrets = [], status = {}, conditions = [] } = contribution ?? {}
  const told = conditions.filter(({ type }) => type === WorkloadCondition.PlaintextSecret)
  return { env, volumes, volumeMounts, secrets, status, conditions: told }
}

function oidcDocument(config: OidcConfig, resolved: Resolved | undefined): OidcClientConfig {
  const hasSecret = resolved?.contribution?.env?.some(({ name }) => name === OIDC_CLIENT_SECRET_VARIABLE)
  return compact({
    issuer: config.issuer ?? '',
    audience: config.audience ?? '',
    clientId: config.client_id,
    clientSecretEnv: hasSecret ? OIDC_CLIENT_SECRET_VARIABLE : undefined,
    resource: config.resource_url,
    jwksUrl: config.jwks_url,
    introspectionUrl: config.introspection_url,
    scopes: config.scopes,
    protectedResourceAllowPrivateIp: config.allow_private_ip,
    jwksAllowPrivateIp: config.jwks_allow_private_ip,
    insecureAllowHttp: config.insecure_allow_http,
    caBundlePath: config.ca_cert_path,
  })
}

/** Settings that a proxy has and the file of a virtual server has not. */
function unsupportedOidc(config: OidcConfig): { field: string; middleware: string }[] {
  const at = 'spec.incomingAuth.oidcConfig'
  const parts: [boolean, string, string][] = [
    [config.this_cluster === true, `${at}.type`, 'kubernetes is not built: use inline'],
    [config.required_subject !== undefined, `${at}.kubernetes.serviceAccount`, 'is not built'],
    [config.auth_token_file !== undefined, `${at}.inline.jwksAuthTokenPath`, 'is not built'],
    [config.client_secret !== undefined, `${at}.inline.clientSecret`, 'is not built: use clientSecretRef'],
    [config.forward_token === true, `${at}.forwardToken`, 'is not built'],
    [config.audience === undefined && config.this_cluster !== true, `${at}.inline.audience`, 'is required: tokens for others are refused'],
  ]
  return parts.filter(([isUsed]) => isUsed).map(([, field, middleware]) => ({ field, middleware }))
}

function policiesOf(authz: Resolved): { document: AuthzFileConfig | undefined; unsupported: { field: string; middleware: string }[] } {
  const text = authz.contribution && 'authzDocument' in authz.contribution ? authz.contribution.authzDocument : undefined
  const read = text === undefined ? undefined : readAuthzDocument(text)
  if (read === undefined || !read.ok) return { document: undefined, unsupported: [] }
  const { cedar, candidate } = read.config
  const document = compact({
    type: 'cedar' as const,
    policies: cedar.policies,
    entitiesJson: cedar.entities_json ?? '[]',
    groupClaimName: cedar.group_claim_name,
    roleClaimName: cedar.role_claim_name,
    groupEntityType: cedar.group_entity_type,
    primaryUpstreamProvider: cedar.primary_upstream_provider,
  })
  const field = 'spec.incomingAuth.authzConfig.candidate'
  return { document, unsupported: candidate === undefined ? [] : [{ field, middleware: 'is not built' }] }
}
