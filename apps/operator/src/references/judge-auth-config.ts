import { configHash } from '@thv/kernel/config-hash'
import type { ConditionUpdate } from '@thv/kube'
import { MCPExternalAuthConfigCondition, MCPExternalAuthConfigReason } from '@thv/resources/kinds/mcp-external-auth-config/constants'
import type { CanonicalMCPExternalAuthConfigSpec } from '@thv/resources/kinds/mcp-external-auth-config/normalise'
import type { MCPExternalAuthConfig } from '@thv/resources/kinds/mcp-external-auth-config/schema'
import { validateExternalAuthConfig } from '@thv/resources/kinds/mcp-external-auth-config/validation'
import type { CanonicalEmbeddedAuthServer } from '@thv/resources/shared/auth-server/embedded-auth-server'
import { missingSecrets, secretUses } from './auth-config-secrets.ts'
import type { Lookup } from './lookup.ts'

export interface AuthConfigVerdict {
  readonly spec: CanonicalMCPExternalAuthConfigSpec
  readonly configHash: string
  /** The condition Valid. */
  readonly valid: ConditionUpdate
}

/**
 * Whether the configuration can be used. The controller writes it into the status; users of the object call this, so that they never
 * wait for the status, and both always agree. Pure.
 */
export function judgeAuthConfig(config: Pick<MCPExternalAuthConfig, 'spec'>, lookup: Pick<Lookup, 'secret'>): AuthConfigVerdict {
  const { spec, problems, warnings } = validateExternalAuthConfig(config)
  return { spec, configHash: configHash(spec), valid: { type: MCPExternalAuthConfigCondition.Valid, ...verdict() } }

  function verdict(): Omit<ConditionUpdate, 'type'> {
    if (problems.length > 0) {
      return { status: 'False', reason: MCPExternalAuthConfigReason.ValidationFailed, message: problems.join('; ') }
    }
    const missing = missingSecrets(secretUses(spec), lookup)
    if (missing.length > 0) return { status: 'False', reason: MCPExternalAuthConfigReason.SecretNotFound, message: missing.join('; ') }
    const message = warnings.length === 0 ? 'the configuration can be used' : `the configuration can be used, but ${warnings.join('; ')}`
    return { status: 'True', reason: MCPExternalAuthConfigReason.ValidationSucceeded, message }
  }
}

/** Everything that the object says of itself. Pure. */
export function authConfigConditions(
  config: Pick<MCPExternalAuthConfig, 'spec'>,
  lookup: Pick<Lookup, 'secret'>,
): { configHash: string; conditions: ConditionUpdate[]; absent: string[] } {
  const { spec, configHash: hash, valid } = judgeAuthConfig(config, lookup)
  const identity = spec.embeddedAuthServer && identityCondition(spec.embeddedAuthServer)
  return {
    configHash: hash,
    conditions: identity ? [valid, identity] : [valid],
    absent: identity ? [] : [MCPExternalAuthConfigCondition.IdentitySynthesized],
  }
}

/** Whether the embedded server must invent a subject, because a provider tells it no identity. */
export function identityCondition({ upstreamProviders }: CanonicalEmbeddedAuthServer): ConditionUpdate {
  const nameless = upstreamProviders.filter(
    ({ type, oauth2Config }) => type === 'oauth2' && !oauth2Config?.userInfo && !oauth2Config?.identityFromToken,
  )
  const type = MCPExternalAuthConfigCondition.IdentitySynthesized
  if (nameless.length === 0) {
    const message = 'every upstream provider says who the user is'
    return { type, status: 'False', reason: MCPExternalAuthConfigReason.AllUpstreamsHaveUserInfo, message }
  }
  const names = nameless.map(({ name }) => name).join(', ')
  return {
    type,
    status: 'True',
    reason: MCPExternalAuthConfigReason.OAuth2UpstreamWithoutUserInfo,
    message: `the subject of users is derived from their token, because nothing says who they are at ${names}: set userInfo or identityFromToken there`,
  }
}
