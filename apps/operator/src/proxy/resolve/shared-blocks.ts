import type { PolicyChecker } from '@thv/authz/policy-syntax'
import type { CanonicalMCPServerSpec } from '@thv/resources/kinds/mcp-server/normalise'
import { serviceHost } from '@thv/resources/shared/workload-url'
import { blocked } from '../../deployment/contribution.ts'
import type { OperatorSettings } from '../../operator-settings.ts'
import type { Lookup } from '../../references/lookup.ts'
import type { Resolved } from '../contribution.ts'
import type { ProxyKind } from '../names.ts'
import type { WantedProtections } from '../run-config-document.ts'
import { resolveAudit } from './audit.ts'
import { resolveAuthz } from './authz.ts'
import { resolveExternalAuth } from './external-auth.ts'
import { loginRef } from './external-oidc.ts'
import { resolveGroupRef } from './group-ref.ts'
import { resolveOidc } from './oidc.ts'
import { resolveSessionStorage } from './session-storage.ts'
import { resolveTelemetry } from './telemetry.ts'
import { resolveToolConfig } from './tool-config.ts'

export interface SharedBlocksInput {
  readonly kind: ProxyKind
  readonly name: string
  readonly namespace: string
  readonly spec: Pick<
    CanonicalMCPServerSpec,
    | 'transport'
    | 'proxyPort'
    | 'oidcConfig'
    | 'authzConfig'
    | 'externalAuthConfigRef'
    | 'authServerRef'
    | 'sessionStorage'
    | 'toolConfigRef'
    | 'telemetry'
    | 'audit'
    | 'groupRef'
  > & { readonly tools?: readonly string[] }
  /** Requested proxy pods: by the spec, else by the current Deployment. */
  readonly replicas: number | undefined
  readonly settings: OperatorSettings
  readonly lookup: Lookup
  readonly checkPolicies: PolicyChecker
  readonly now: number
}

export interface SharedBlocks {
  readonly oidc: Resolved
  readonly hasSharedStore: boolean
  /** All of them, `oidc` included. */
  readonly resolved: readonly Resolved[]
  readonly protections: WantedProtections
}

/** The blocks of a spec that MCPServer and MCPRemoteProxy have in common. */
export function resolveSharedBlocks(input: SharedBlocksInput): SharedBlocks {
  const { kind, name, namespace, spec, settings, lookup, checkPolicies, now, replicas } = input
  const { clusterDomain, defaultRedis } = settings
  const host = serviceHost({ kind, name, namespace, clusterDomain })
  const place = { name, namespace, lookup, now, clusterDomain }
  const oidc = resolveOidc({ ...place, oidcConfig: spec.oidcConfig, serviceHost: host, proxyPort: spec.proxyPort })
  const login = loginRef(spec, lookup)
  const toolConfig = resolveToolConfig({ toolConfigRef: spec.toolConfigRef, lookup, ...(spec.tools && { tools: spec.tools }) })
  const session = resolveSessionStorage({ ...place, sessionStorage: spec.sessionStorage, defaultRedis, replicas })
  const external = resolveExternalAuth({
    ...place,
    ref: spec.externalAuthConfigRef,
    authServerRef: login.ref,
    kind,
    transport: spec.transport,
    oidc: spec.oidcConfig && !oidc.ok ? 'unresolved' : oidc.contribution?.runConfig?.oidc_config,
    resourceUrl: `http://${host}:${spec.proxyPort}`,
  })
  return {
    oidc,
    hasSharedStore: session.contribution?.runConfig?.scaling_config?.session_redis !== undefined,
    resolved: [
      oidc,
      resolveAuthz({
        kind,
        name,
        authzConfig: spec.authzConfig,
        login: external.ok ? external.server : 'unresolved',
        toolOverrides: toolConfig.contribution?.runConfig?.tools_override,
        checkPolicies,
        lookup,
      }),
      external,
      ...(login.blockers.length > 0 ? [blocked(...login.blockers)] : []),
      session,
      toolConfig,
      resolveTelemetry({ telemetry: spec.telemetry, sendsAudit: spec.audit.enabled && spec.audit.otlp, name, namespace, lookup, now }),
      resolveAudit({ audit: spec.audit, telemetry: spec.telemetry }),
      resolveGroupRef({ groupRef: spec.groupRef, lookup }),
    ],
    protections: protectionsOf(spec, { lookup, hasLogin: spec.authServerRef !== undefined || login.ref !== undefined }),
  }
}

function protectionsOf(spec: SharedBlocksInput['spec'], { lookup, hasLogin }: { lookup: Lookup; hasLogin: boolean }): WantedProtections {
  const config = spec.toolConfigRef && lookup.toolConfig(spec.toolConfigRef.name)
  // A config that is not there may be meant to hide something.
  const isFilterMissing = spec.toolConfigRef !== undefined && config === undefined
  const filter = spec.toolConfigRef === undefined ? spec.tools : config?.spec?.toolsFilter
  const outgoing = spec.externalAuthConfigRef && lookup.externalAuthConfig(spec.externalAuthConfigRef.name)
  return {
    oidc_config: spec.oidcConfig !== undefined,
    authz_config_path: spec.authzConfig !== undefined,
    audit_config: spec.audit.enabled,
    tools_filter: isFilterMissing || (filter?.length ?? 0) > 0,
    embedded_auth_server_config: hasLogin || outgoing?.spec.type === 'embeddedAuthServer',
  }
}
