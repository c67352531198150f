import { AUTH_TYPES, type AuthType } from '@thv/resources/kinds/mcp-external-auth-config/constants'
import type { CanonicalMCPExternalAuthConfigSpec } from '@thv/resources/kinds/mcp-external-auth-config/normalise'
import type { MCPExternalAuthConfig } from '@thv/resources/kinds/mcp-external-auth-config/schema'
import type { CanonicalEmbeddedAuthServer } from '@thv/resources/shared/auth-server/embedded-auth-server'
import { WorkloadCondition, WorkloadReason } from '@thv/resources/shared/workload-conditions'
import type { OidcConfig } from '@thv/runconfig/policy-config'
import { managedSecretName, needsManagedKeys } from '../../auth-server/managed-keys.ts'
import type { Blocker } from '../../deployment/contribution.ts'
import { secretUses } from '../../references/auth-config-secrets.ts'
import { type AuthConfigVerdict, judgeAuthConfig } from '../../references/judge-auth-config.ts'
import type { Lookup } from '../../references/lookup.ts'
import type { Contribution, Resolved } from '../contribution.ts'
import { authServerContribution, authServerMismatches } from './auth-server.ts'
import { EXTERNAL_AUTH_TABLE } from './external-auth-table.ts'
import { type OutgoingSpec, outgoingContribution, outgoingProblems } from './outgoing-auth.ts'

export interface ExternalAuthArgs {
  readonly ref: { readonly name: string } | undefined
  readonly authServerRef: { readonly kind: string; readonly name: string } | undefined
  readonly kind: 'MCPServer' | 'MCPRemoteProxy'
  /** The server's transport; a stdio server gets no headers. */
  readonly transport?: string | undefined
  /** `unresolved` when there is an OIDC configuration that is itself blocked. */
  readonly oidc: OidcConfig | 'unresolved' | undefined
  readonly name: string
  readonly namespace: string
  /** Where clients reach the workload, unless the OIDC configuration says otherwise. */
  readonly resourceUrl: string
  readonly clusterDomain?: string | undefined
  readonly lookup: Pick<Lookup, 'externalAuthConfig' | 'secret'>
}

/** With the embedded server that clients log in to, if there is one. */
export type ResolvedExternalAuth = Resolved & { readonly server?: CanonicalEmbeddedAuthServer | undefined }

/** The result of one reference. */
interface Part {
  readonly blockers: readonly Blocker[]
  readonly contribution: Contribution
  /** The embedded server, if that is what the reference leads to. */
  readonly server?: CanonicalEmbeddedAuthServer | undefined
}

/**
 * `externalAuthConfigRef` (how the server is called) and `authServerRef` (where clients log in). Pure. Each type does what
 * EXTERNAL_AUTH_TABLE says; what cannot be resolved blocks.
 */
export function resolveExternalAuth(args: ExternalAuthArgs): ResolvedExternalAuth {
  const login = args.authServerRef && authServerPart(args, args.authServerRef)
  const outgoing = args.ref && externalAuthPart(args, { ref: args.ref, login })
  const parts = [login, outgoing].filter((part) => part !== undefined)
  const contribution = joined(parts.map((part) => part.contribution))
  const blockers = parts.flatMap((part) => part.blockers)
  const server = parts.find((part) => part.server !== undefined)?.server
  if (blockers.length === 0) return { ok: true, contribution, server }
  const { conditions = [], status = {} } = contribution
  return { ok: false, blockers, contribution: { conditions, status } }
}

function authServerPart(args: ExternalAuthArgs, ref: { kind: string; name: string }): Part {
  const refuse = (reason: string, message: string) => refused(WorkloadCondition.AuthServerRefValidated, reason, message)
  if (ref.kind !== 'MCPExternalAuthConfig') {
    return refuse(WorkloadReason.AuthServerRefInvalidKind, `spec.authServerRef.kind must be MCPExternalAuthConfig, not ${ref.kind}`)
  }
  const config = args.lookup.externalAuthConfig(ref.name)
  if (config === undefined) return refuse(WorkloadReason.AuthServerRefNotFound, notFound('spec.authServerRef', ref.name))
  const verdict = judgeAuthConfig(config, args.lookup)
  const server = verdict.spec.embeddedAuthServer
  if (server === undefined || verdict.spec.type !== 'embeddedAuthServer') {
    const message = `spec.authServerRef must name an MCPExternalAuthConfig of type embeddedAuthServer, and ${ref.name} has type ${verdict.spec.type}`
    return refuse(WorkloadReason.AuthServerRefInvalidType, message)
  }
  if (verdict.valid.status !== 'True') return refuse(WorkloadReason.AuthServerRefInvalidConfig, invalid(ref.name, verdict))
  const mismatches = loginProblems(args, { server, config: ref.name })
  if (mismatches.length > 0) {
    return refuse(
      WorkloadReason.AuthServerRefInvalidConfig,
      `MCPExternalAuthConfig ${ref.name} does not fit here: ${mismatches.join('; ')}`,
    )
  }
  const valid = {
    type: WorkloadCondition.AuthServerRefValidated,
    status: 'True',
    reason: WorkloadReason.AuthServerRefValid,
    message: `clients log in to the server of MCPExternalAuthConfig ${ref.name}`,
  } as const
  const told: Contribution = { conditions: [valid], status: { authServerConfigHash: verdict.configHash } }
  return withLogin(args, { server, config: ref.name, told })
}

function externalAuthPart(args: ExternalAuthArgs, { ref, login }: { ref: { name: string }; login: Part | undefined }): Part {
  const refuse = (reason: string, message: string) => refused(WorkloadCondition.ExternalAuthConfigValidated, reason, message)
  const config = args.lookup.externalAuthConfig(ref.name)
  if (config === undefined) return refuse(WorkloadReason.ExternalAuthConfigNotFound, notFound('spec.externalAuthConfigRef', ref.name))
  const verdict = judgeAuthConfig(config, args.lookup)
  const { spec } = verdict
  if (verdict.valid.status !== 'True') {
    return refuse(verdict.valid.reason || WorkloadReason.InvalidExternalAuthConfig, invalid(ref.name, verdict))
  }
  const effect = effectOf(spec, args.kind)
  if (effect.effect === 'rejected') {
    return refuse(effect.reason, `MCPExternalAuthConfig ${ref.name} of type ${spec.type} cannot be used by an ${args.kind}: ${effect.note}`)
  }
  const problems = fitProblems(args, { spec, login, config: ref.name })
  if (problems.length > 0) {
    return refuse(WorkloadReason.InvalidConfig, `MCPExternalAuthConfig ${ref.name} does not fit here: ${problems.join('; ')}`)
  }
  const told: Contribution = { conditions: healthy(args.kind, ref.name), status: { externalAuthConfigHash: verdict.configHash } }
  if (spec.embeddedAuthServer) return withLogin(args, { server: spec.embeddedAuthServer, config: ref.name, told })
  return usable(joined([told, outgoingContribution(spec as OutgoingSpec, args), { secrets: secretNames(verdict) }]))
}

function fitProblems(
  args: ExternalAuthArgs,
  { spec, login, config }: { spec: CanonicalMCPExternalAuthConfigSpec; login: Part | undefined; config: string },
): string[] {
  if (spec.embeddedAuthServer) {
    if (args.authServerRef) return ['spec.authServerRef or spec.oidcConfig.external names an embedded server already: keep one of them']
    return loginProblems(args, { server: spec.embeddedAuthServer, config })
  }
  return outgoingProblems(spec as OutgoingSpec, { ...args, login: login?.server, hasAuthServerRef: args.authServerRef !== undefined })
}

/** Keys of somebody else must not sign: the Secret with the name of those that the operator makes is mounted only if it made it. */
function loginProblems(args: ExternalAuthArgs, { server, config }: { server: CanonicalEmbeddedAuthServer; config: string }): string[] {
  const secret = managedSecretName('MCPExternalAuthConfig', config)
  const maker = needsManagedKeys(server) ? args.lookup.secret(secret)?.controller : undefined
  return [
    ...authServerMismatches(server, { oidc: args.oidc, resourceUrl: resourceUrlOf(args) }),
    ...(maker === undefined || maker === `MCPExternalAuthConfig ${config}`
      ? []
      : [`Secret ${secret} is in the way of the keys that the operator makes: rename it or delete it`]),
  ]
}

function withLogin(
  args: ExternalAuthArgs,
  { server, config, told }: { server: CanonicalEmbeddedAuthServer; config: string; told: Contribution },
): Part {
  const contribution = authServerContribution(server, {
    ...args,
    scopes: scopesOf(args),
    resourceUrl: resourceUrlOf(args),
    managedSecret: managedSecretName('MCPExternalAuthConfig', config),
  })
  return { ...usable(joined([told, contribution])), server }
}

function scopesOf({ oidc }: ExternalAuthArgs): readonly string[] {
  return typeof oidc === 'object' ? oidc.scopes : []
}

function resourceUrlOf({ oidc, resourceUrl }: ExternalAuthArgs): string {
  return (typeof oidc === 'object' ? oidc.resource_url : undefined) ?? resourceUrl
}

/** The table, for a type that may come from an older schema. */
export function effectOf(spec: Pick<MCPExternalAuthConfig['spec'], 'type'>, kind: keyof (typeof EXTERNAL_AUTH_TABLE)[AuthType]) {
  const type = AUTH_TYPES.find((known) => known === spec.type)
  if (type !== undefined) return EXTERNAL_AUTH_TABLE[type][kind]
  return { effect: 'rejected', reason: WorkloadReason.InvalidConfig, note: 'use another type' } as const
}

/** MCPServer shows this condition only while something is wrong; MCPRemoteProxy always. */
function healthy(kind: ExternalAuthArgs['kind'], name: string): NonNullable<Contribution['conditions']> {
  if (kind === 'MCPServer') return []
  const message = `MCPExternalAuthConfig ${name} is used`
  return [{ type: WorkloadCondition.ExternalAuthConfigValidated, status: 'True', reason: WorkloadReason.ExternalAuthConfigValid, message }]
}

function usable(contribution: Contribution): Part {
  return { blockers: [], contribution }
}

function refused(condition: string, reason: string, message: string): Part {
  return { blockers: [{ condition, status: 'False', reason, message }], contribution: {} }
}

function secretNames({ spec }: AuthConfigVerdict): string[] {
  return [...new Set(secretUses(spec).map(({ name }) => name))]
}

function notFound(field: string, name: string): string {
  return `${field} names MCPExternalAuthConfig ${name}, and there is none in this namespace: create it or correct the name`
}

function invalid(name: string, { valid }: AuthConfigVerdict): string {
  return `MCPExternalAuthConfig ${name} is not valid: ${valid.message}`
}

/** No two of them set the same member: the table gives each reference a field of its own. */
function joined(parts: readonly Contribution[]): Contribution {
  return {
    runConfig: Object.assign({}, ...parts.map(({ runConfig }) => runConfig)),
    env: parts.flatMap(({ env = [] }) => env),
    volumes: parts.flatMap(({ volumes = [] }) => volumes),
    volumeMounts: parts.flatMap(({ volumeMounts = [] }) => volumeMounts),
    secrets: [...new Set(parts.flatMap(({ secrets = [] }) => secrets))],
    conditions: parts.flatMap(({ conditions = [] }) => conditions),
    status: Object.assign({}, ...parts.map(({ status }) => status)),
  }
}
