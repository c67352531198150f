import { readAuthzDocument } from '@thv/authz/load/authz-document'
import type { PolicyChecker } from '@thv/authz/policy-syntax'
import { compact } from '@thv/resources/schema/normalize'
import type { CanonicalPolicySource } from '@thv/resources/shared/authz-config'
import { WorkloadCondition, WorkloadReason } from '@thv/resources/shared/workload-conditions'
import type { CedarConfig } from '@thv/runconfig/policy-config'
import type { Blocker } from '../../deployment/contribution.ts'
import type { Lookup } from '../../references/lookup.ts'

export interface PolicySourceDeps {
  /** Given from outside, so that the policy engine is loaded only where policies are used. */
  readonly checkPolicies: PolicyChecker
  readonly lookup: Pick<Lookup, 'configMap'>
  /** The ConfigMap that the operator itself writes. */
  readonly ownMap: string
}

export interface PolicySet {
  readonly cedar: CedarConfig
  /** Of the same document: policies that are only tried. */
  readonly candidate: CedarConfig | undefined
  /** Where a member is, in words of the user. */
  readonly where: (path: string) => string
}

export type PolicyReading = { readonly ok: true; readonly set: PolicySet } | { readonly ok: false; readonly blocker: Blocker }

/** One set of policies, checked. `field` is its path in the spec. */
export function readPolicies(field: string, source: CanonicalPolicySource, deps: PolicySourceDeps): PolicyReading {
  const read = source.type === 'inline' ? inline(field, source.inline) : fromConfigMap(field, source.configMap, deps)
  if (!read.ok) return read
  const { cedar, candidate, where, whereCandidate } = read
  const problems = [
    ...deps.checkPolicies(cedar.policies, cedar.entities_json).map(({ path, message }) => `${where(path)}: ${message}`),
    ...(candidate === undefined
      ? []
      : deps.checkPolicies(candidate.policies, candidate.entities_json).map(({ path, message }) => `${whereCandidate(path)}: ${message}`)),
  ]
  if (problems.length > 0) return { ok: false, blocker: invalid(WorkloadReason.AuthzPolicySyntaxInvalid, problems.join('; ')) }
  return { ok: true, set: { cedar, candidate, where } }
}

/** A blocker about the policies. */
export function invalid(reason: string, message: string): Blocker {
  return { condition: WorkloadCondition.ConfigurationValid, reason, message }
}

type Unchecked =
  | ({ readonly ok: true; readonly whereCandidate: (path: string) => string } & PolicySet)
  | { readonly ok: false; readonly blocker: Blocker }

type Inline = Extract<CanonicalPolicySource, { type: 'inline' }>['inline']
type ConfigMapKey = Extract<CanonicalPolicySource, { type: 'configMap' }>['configMap']

function inline(field: string, { policies, entitiesJson, primaryUpstreamProvider }: Inline): Unchecked {
  const cedar = compact({ policies, entities_json: entitiesJson, primary_upstream_provider: primaryUpstreamProvider })
  const where = (path: string) => `${field}.inline.${camelCase(path)}`
  return { ok: true, cedar, candidate: undefined, where, whereCandidate: where }
}

function fromConfigMap(field: string, { name, key }: ConfigMapKey, { lookup, ownMap }: PolicySourceDeps): Unchecked {
  if (name === ownMap) {
    const message = `${field}.configMap names ConfigMap ${name}, which the operator writes: keep the policies in one of another name`
    return { ok: false, blocker: invalid(WorkloadReason.AuthzConfigMapInvalid, message) }
  }
  const text = lookup.configMap(name)?.data[key]
  if (text === undefined) {
    const message = `${field}.configMap names key ${key} of ConfigMap ${name}, which does not exist: create it with a document {version, type, cedar: {policies}} in JSON or YAML`
    return { ok: false, blocker: invalid(WorkloadReason.AuthzConfigMapNotFound, message) }
  }
  const where = (path: string) => `key ${key} of ConfigMap ${name}, ${path}`
  const read = readAuthzDocument(text)
  if (read.ok) {
    const { cedar, candidate } = read.config
    return { ok: true, cedar, candidate, where: (path) => where(`cedar.${path}`), whereCandidate: (path) => where(`candidate.${path}`) }
  }
  const message = read.problems.map((problem) => where(problem)).join('; ')
  return { ok: false, blocker: invalid(WorkloadReason.AuthzConfigMapInvalid, message) }
}

function camelCase(path: string): string {
  return path.replaceAll(/_([a-z])/g, (_, letter: string) => letter.toUpperCase())
}
