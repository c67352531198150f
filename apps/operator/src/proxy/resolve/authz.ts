import { AUTHZ_TYPE, AUTHZ_VERSION, checkAuthzConfig } from '@thv/authz/load/authz-document'
import { configHash } from '@thv/kernel/config-hash'
import type { ConditionUpdate } from '@thv/kube'
import { compact } from '@thv/resources/schema/normalize'
import type { CanonicalEmbeddedAuthServer } from '@thv/resources/shared/auth-server/embedded-auth-server'
import type { CanonicalAuthzConfig } from '@thv/resources/shared/authz-config'
import { WorkloadCondition, WorkloadReason } from '@thv/resources/shared/workload-conditions'
import type { AuthzConfig, CedarConfig } from '@thv/runconfig/policy-config'
import { AUTHZ_FOLDER, AUTHZ_PATH } from '@thv/runconfig/run-config-mount'
import { type Blocker, blocked } from '../../deployment/contribution.ts'
import { contributes, nothing, type Resolved } from '../contribution.ts'
import { type ProxyKind, proxyNames, virtualServerNames } from '../names.ts'
import { invalid, type PolicySet, type PolicySourceDeps, readPolicies } from './authz-source.ts'
import { type ToolOverrides, visibleToolNames } from './visible-tool-names.ts'

export interface AuthzArgs extends Omit<PolicySourceDeps, 'ownMap'> {
  readonly kind: ProxyKind | 'VirtualMCPServer'
  /** Of the workload. */
  readonly name: string
  readonly authzConfig: CanonicalAuthzConfig | undefined
  /** The embedded server whose clients the policies are for; `unresolved` when it is itself blocked. */
  readonly login?: LoginProviders | 'unresolved' | undefined
  /** RunConfig `tools_override`. */
  readonly toolOverrides?: ToolOverrides | undefined
}

/** Providers of an embedded authorization server. */
export type LoginProviders = Pick<CanonicalEmbeddedAuthServer, 'primaryUpstreamProvider'> & {
  readonly upstreamProviders: readonly { readonly name: string }[]
}

/** Authorization. Policies that cannot be read block: without them every caller could do everything. */
export function resolveAuthz({ kind, name, authzConfig, login, toolOverrides = {}, ...deps }: AuthzArgs): Resolved {
  if (authzConfig === undefined) return nothing
  const ownMap = kind === 'VirtualMCPServer' ? virtualServerNames(name).config : proxyNames(kind, name).authz
  const made = documentOf(authzConfig, { ...deps, ownMap, login })
  if (!made.ok) return blocked(made.blocker)

  const { authz, ignored } = made
  const document = `${JSON.stringify(authz, undefined, 2)}\n`
  if (Buffer.byteLength(document) > MAX_BYTES) return blocked(tooLarge(authzConfig))
  const policies = [...authz.cedar.policies, ...(authz.candidate?.policies ?? [])]
  return contributes({
    runConfig: compact({ authz_config_path: AUTHZ_PATH, authz_primary_upstream_provider: authz.cedar.primary_upstream_provider }),
    authzDocument: document,
    volumes: [{ name: VOLUME, configMap: { name: ownMap } }],
    volumeMounts: [{ name: VOLUME, mountPath: AUTHZ_FOLDER, readOnly: true }],
    conditions: [...(ignored === undefined ? [] : [providerIgnored(ignored)]), ...visibleToolNames(policies, toolOverrides)],
    status: { authzConfigHash: configHash(authz) },
  })
}

const VOLUME = 'authz-config'

/** All that a ConfigMap holds is 1 MiB, its metadata included. */
const MAX_BYTES = 1_000_000

function tooLarge({ type }: CanonicalAuthzConfig): Blocker {
  const message = `spec.authzConfig.${type} has more than ${MAX_BYTES} bytes of policies and entities, which is more than a ConfigMap holds`
  return invalid(WorkloadReason.AuthzConfigMapInvalid, message)
}

type Document =
  | {
      readonly ok: true
      readonly authz: AuthzConfig & { readonly cedar: CedarConfig }
      /** Where a provider is named that has no effect. */
      readonly ignored: string | undefined
    }
  | { readonly ok: false; readonly blocker: Blocker }

type DocumentDeps = PolicySourceDeps & Pick<AuthzArgs, 'login'>

function documentOf(config: CanonicalAuthzConfig, { login, ...deps }: DocumentDeps): Document {
  const field = 'spec.authzConfig'
  const enforced = readPolicies(field, config, deps)
  if (!enforced.ok) return enforced
  const { set } = enforced
  const candidate = candidateOf(config, set, deps)
  if (!candidate.ok) return candidate
  const named = set.cedar.primary_upstream_provider
  const where = set.where('primary_upstream_provider')
  const primary = typeof login === 'object' ? primaryProvider({ named, where }, login) : { provider: undefined, problem: undefined }
  if (primary.problem !== undefined) return { ok: false, blocker: invalid(WorkloadReason.InvalidSpec, primary.problem) }
  const cedar = compact({ ...cedarOf(set.cedar, config), primary_upstream_provider: primary.provider })
  const tried = candidate.cedar && cedarOf({ ...mappingOf(cedar), ...candidate.cedar }, config.candidate ?? {})
  const authz = { version: AUTHZ_VERSION, type: AUTHZ_TYPE, cedar, ...(tried && { candidate: tried }) }
  const checked = checkAuthzConfig(authz)
  if (!checked.ok) return { ok: false, blocker: invalid(WorkloadReason.InvalidSpec, `${field}: ${checked.problems.join('; ')}`) }
  return { ok: true, authz, ignored: named === undefined || login !== undefined ? undefined : where }
}

interface NamedProvider {
  readonly named: string | undefined
  readonly where: string
}

/** The provider whose claims the policies see: of the policies, or of the server. */
function primaryProvider({ named, where }: NamedProvider, { primaryUpstreamProvider, upstreamProviders }: LoginProviders) {
  const provider = named ?? primaryUpstreamProvider
  if (primaryUpstreamProvider !== undefined && provider !== primaryUpstreamProvider)
    return { problem: `${where} is ${named}, and primaryUpstreamProvider of the embedded server is ${primaryUpstreamProvider}: keep one` }
  if (provider !== undefined && !upstreamProviders.some(({ name }) => name === provider))
    return { problem: `${where} is ${provider}, and the embedded server has no such provider: correct the name` }
  return { provider, problem: undefined }
}

type Candidate = { readonly ok: true; readonly cedar: CedarConfig | undefined } | { readonly ok: false; readonly blocker: Blocker }

/** Of the spec, or of the document that the enforced policies are in. */
function candidateOf({ candidate: source }: CanonicalAuthzConfig, enforced: PolicySet, deps: PolicySourceDeps): Candidate {
  if (source === undefined) return { ok: true, cedar: enforced.candidate }
  const field = 'spec.authzConfig.candidate'
  const twice = (message: string): Candidate => ({ ok: false, blocker: invalid(WorkloadReason.AuthzConfigMapInvalid, message) })
  if (enforced.candidate !== undefined)
    return twice(`${field} is set, and the document of the enforced policies has a candidate, too: keep one`)
  const read = readPolicies(field, source, deps)
  if (!read.ok) return read
  if (read.set.candidate !== undefined) return twice(`${field}: the document of a candidate cannot have a candidate itself: remove it`)
  return { ok: true, cedar: read.set.cedar }
}

type ClaimNames = Pick<CanonicalAuthzConfig, 'groupClaimName' | 'roleClaimName' | 'groupEntityType'>

/** Names of claims in the spec win. */
function cedarOf({ primary_upstream_provider: _, ...cedar }: CedarConfig, names: ClaimNames): CedarConfig {
  return compact({
    ...cedar,
    group_claim_name: names.groupClaimName || cedar.group_claim_name,
    role_claim_name: names.roleClaimName || cedar.role_claim_name,
    group_entity_type: names.groupEntityType || cedar.group_entity_type,
  })
}

/** The claims that candidates mean as well, unless they say otherwise. */
function mappingOf({ policies: _, entities_json: __, ...mapping }: CedarConfig): Partial<CedarConfig> {
  return mapping
}

function providerIgnored(field: string): ConditionUpdate {
  return {
    type: WorkloadCondition.AuthzPrimaryUpstreamProviderIgnored,
    status: 'True',
    reason: WorkloadReason.PrimaryUpstreamProviderIgnored,
    message: `${field} has no effect without an embedded authorization server: set spec.authServerRef, or remove it`,
  }
}
