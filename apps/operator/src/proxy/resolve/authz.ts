import { AUTHZ_TYPE, AUTHZ_VERSION, checkAuthzConfig, readAuthzDocument } from '@thv/authz/load/authz-document'
import type { PolicyChecker } from '@thv/authz/policy-syntax'
import { configHash } from '@thv/kernel/config-hash'
import type { ConditionUpdate } from '@thv/kube'
import { compact } from '@thv/resources/schema/normalize'
import type { CanonicalAuthzConfig } from '@thv/resources/shared/authz-config'
import { WorkloadCondition, WorkloadReason } from '@thv/resources/shared/workload-conditions'
import type { AuthzConfig, CedarConfig } from '@thv/runconfig/policy-config'
import { AUTHZ_FOLDER, AUTHZ_PATH } from '@thv/runconfig/run-config-mount'
import type { Blocker } from '../../deployment/contribution.ts'
import type { Lookup } from '../../references/lookup.ts'
import { contributes, nothing, type Resolved } from '../contribution.ts'
import { type ProxyKind, proxyNames } from '../names.ts'

export interface AuthzArgs {
  readonly kind: ProxyKind
  /** Of the workload. */
  readonly name: string
  readonly authzConfig: CanonicalAuthzConfig | undefined
  /** Given from outside, so that the policy engine is loaded only where policies are used. */
  readonly checkPolicies: PolicyChecker
  readonly lookup: Pick<Lookup, 'configMap'>
}

/** Authorization. Policies that cannot be read block: without them every caller could do everything. */
export function resolveAuthz({ kind, name, authzConfig, checkPolicies, lookup }: AuthzArgs): Resolved {
  if (authzConfig === undefined) return nothing
  const { authz: ownMap } = proxyNames(kind, name)
  const source = readSource(authzConfig, { lookup, ownMap })
  if (!source.ok) return { ok: false, blockers: [source.blocker] }

  const { cedar, where } = source
  const problems = checkPolicies(cedar.policies, cedar.entities_json)
  if (problems.length > 0) {
    const message = problems.map(({ path, message: what }) => `${where(path)}: ${what}`).join('; ')
    return { ok: false, blockers: [invalid(WorkloadReason.AuthzPolicySyntaxInvalid, message)] }
  }
  const { primary_upstream_provider: ignored, ...used } = cedar
  const authz: AuthzConfig = {
    version: AUTHZ_VERSION,
    type: AUTHZ_TYPE,
    cedar: compact({
      ...used,
      group_claim_name: authzConfig.groupClaimName || used.group_claim_name,
      role_claim_name: authzConfig.roleClaimName || used.role_claim_name,
      group_entity_type: authzConfig.groupEntityType || used.group_entity_type,
    }),
  }
  const checked = checkAuthzConfig(authz)
  if (!checked.ok) return { ok: false, blockers: [invalid(WorkloadReason.InvalidSpec, `spec.authzConfig: ${checked.problems.join('; ')}`)] }
  const document = `${JSON.stringify(authz, undefined, 2)}\n`
  if (Buffer.byteLength(document) > MAX_BYTES) return { ok: false, blockers: [tooLarge(authzConfig)] }
  return contributes({
    runConfig: { authz_config_path: AUTHZ_PATH },
    authzDocument: document,
    volumes: [{ name: VOLUME, configMap: { name: ownMap } }],
    volumeMounts: [{ name: VOLUME, mountPath: AUTHZ_FOLDER, readOnly: true }],
    conditions: ignored === undefined ? [] : [providerIgnored(where('primary_upstream_provider'))],
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

interface SourceDeps extends Pick<AuthzArgs, 'lookup'> {
  /** The ConfigMap that the operator itself writes. */
  readonly ownMap: string
}

type Source = { ok: true; cedar: CedarConfig; where: (path: string) => string } | { ok: false; blocker: Blocker }

function readSource(config: CanonicalAuthzConfig, { lookup, ownMap }: SourceDeps): Source {
  if (config.type === 'inline') {
    const { policies, entitiesJson, primaryUpstreamProvider } = config.inline
    const cedar = compact({ policies, entities_json: entitiesJson, primary_upstream_provider: primaryUpstreamProvider })
    return { ok: true, cedar, where: (path) => `spec.authzConfig.inline.${camelCase(path)}` }
  }
  const { name, key } = config.configMap
  if (name === ownMap) {
    const message = `spec.authzConfig.configMap names ConfigMap ${name}, which the operator writes: keep the policies in one of another name`
    return { ok: false, blocker: invalid(WorkloadReason.AuthzConfigMapInvalid, message) }
  }
  const text = lookup.configMap(name)?.data[key]
  if (text === undefined) {
    const message = `spec.authzConfig.configMap names key ${key} of ConfigMap ${name}, which does not exist: create it with a document {version, type, cedar: {policies}} in JSON or YAML`
    return { ok: false, blocker: invalid(WorkloadReason.AuthzConfigMapNotFound, message) }
  }
  const where = (path: string) => `key ${key} of ConfigMap ${name}, ${path}`
  const read = readAuthzDocument(text)
  if (read.ok) return { ok: true, cedar: read.config.cedar, where: (path) => where(`cedar.${path}`) }
  const message = read.problems.map((problem) => where(problem)).join('; ')
  return { ok: false, blocker: invalid(WorkloadReason.AuthzConfigMapInvalid, message) }
}

function camelCase(path: string): string {
  return path.replaceAll(/_([a-z])/g, (_, letter: string) => letter.toUpperCase())
}

function providerIgnored(field: string): ConditionUpdate {
  return {
    type: WorkloadCondition.AuthzPrimaryUpstreamProviderIgnored,
    status: 'True',
    reason: WorkloadReason.PrimaryUpstreamProviderIgnored,
    message: `${field} has no effect here: only a VirtualMCPServer has several upstream providers; remove it`,
  }
}

function invalid(reason: string, message: string): Blocker {
  return { condition: WorkloadCondition.ConfigurationValid, reason, message }
}
