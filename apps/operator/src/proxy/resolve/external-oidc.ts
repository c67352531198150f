import { INCOMING_AUTH_TYPES } from '@thv/resources/kinds/mcp-external-auth-config/schema'
import { type CanonicalInlineOidc, DEFAULT_OIDC_SCOPES } from '@thv/resources/shared/inline-oidc'
import type { CanonicalOidcConfig } from '@thv/resources/shared/oidc-config'
import { WorkloadCondition, WorkloadReason } from '@thv/resources/shared/workload-conditions'
import type { Blocker } from '../../deployment/contribution.ts'
import { judgeAuthConfig } from '../../references/judge-auth-config.ts'
import type { Lookup } from '../../references/lookup.ts'

export type ExternalOidc =
  | { readonly ok: true; readonly oidc: CanonicalInlineOidc; readonly at: (member: string) => string }
  | { readonly ok: false; readonly blockers: Blocker[] }

type Configs = Pick<Lookup, 'externalAuthConfig' | 'secret'>

const FIELD = 'spec.oidcConfig.external'

/**
 * The OIDC settings of the MCPExternalAuthConfig that `oidcConfig.external` names. A config for requests to the server says nothing about
 * clients, so a proxy with it would be open: it blocks.
 */
export function readExternalOidc(name: string, { resourceUrl, lookup }: { resourceUrl: string; lookup: Configs }): ExternalOidc {
  const config = lookup.externalAuthConfig(name)
  if (config === undefined) {
    const message = `${FIELD} names MCPExternalAuthConfig ${name}, and there is none in this namespace: create it or correct the name`
    return blocks(WorkloadReason.ExternalAuthConfigNotFound, message)
  }
  const { spec, valid } = judgeAuthConfig(config, lookup)
  if (!(INCOMING_AUTH_TYPES as readonly string[]).includes(spec.type)) {
    const message = `${FIELD} must name an MCPExternalAuthConfig of type ${INCOMING_AUTH_TYPES.join(' or ')}, and ${name} has type ${spec.type}, which is for requests to the server: name that in spec.externalAuthConfigRef`
    return blocks(WorkloadReason.NotIncomingAuth, message)
  }
  const { oidc, embeddedAuthServer: server } = spec
  if (valid.status !== 'True') {
    const message = `MCPExternalAuthConfig ${name}, named by ${FIELD}, is not valid: ${valid.message}`
    return blocks(valid.reason || WorkloadReason.InvalidExternalAuthConfig, message)
  }
  if (oidc) return { ok: true, oidc, at: (member) => `spec.oidc.${member} of MCPExternalAuthConfig ${name}` }
  if (server) {
    // The proxy accepts exactly the tokens that its own server issues.
    const own: CanonicalInlineOidc = {
      issuer: server.issuer,
      audience: resourceUrl,
      jwksAllowPrivateIP: false,
      protectedResourceAllowPrivateIP: false,
      insecureAllowHTTP: server.insecureAllowHTTP,
      scopes: [...new Set([...DEFAULT_OIDC_SCOPES, ...server.baselineClientScopes])],
    }
    return { ok: true, oidc: own, at: (member) => `spec.embeddedAuthServer.${member} of MCPExternalAuthConfig ${name}` }
  }
  throw new Error(`a valid MCPExternalAuthConfig of type ${spec.type} has no settings`)
}

export interface LoginRef {
  readonly ref: { readonly kind: string; readonly name: string } | undefined
  readonly blockers: readonly Blocker[]
}

/** The embedded authorization server that clients log in to: named by `authServerRef`, by `oidcConfig.external`, or by both alike. */
export function loginRef(
  spec: { readonly oidcConfig?: CanonicalOidcConfig; readonly authServerRef?: { readonly kind: string; readonly name: string } },
  lookup: Pick<Lookup, 'externalAuthConfig'>,
): LoginRef {
  const { oidcConfig, authServerRef } = spec
  if (oidcConfig?.type !== 'external') return { ref: authServerRef, blockers: [] }
  const { name } = oidcConfig.external
  if (lookup.externalAuthConfig(name)?.spec.type !== 'embeddedAuthServer') return { ref: authServerRef, blockers: [] }
  if (authServerRef === undefined || authServerRef.name === name) return { ref: { kind: 'MCPExternalAuthConfig', name }, blockers: [] }
  const message = `spec.authServerRef names ${authServerRef.name} and ${FIELD} the embedded server ${name}, and a proxy has one: name the same in both, or remove spec.authServerRef`
  const blocker = { condition: WorkloadCondition.AuthServerRefValidated, reason: WorkloadReason.AuthServerRefInvalidConfig, message }
  return { ref: undefined, blockers: [blocker] }
}

function blocks(reason: string, message: string): ExternalOidc {
  return { ok: false, blockers: [{ condition: WorkloadCondition.ConfigurationValid, reason, message }] }
}
