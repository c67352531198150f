import type { PolicyChecker } from '@thv/authz/policy-syntax'
import type { ConditionUpdate } from '@thv/kube'
import { MCPRemoteProxyCondition, MCPRemoteProxyReason } from '@thv/resources/kinds/mcp-remote-proxy/constants'
import { type CanonicalMCPRemoteProxySpec, normaliseMcpRemoteProxy } from '@thv/resources/kinds/mcp-remote-proxy/normalise'
import type { MCPRemoteProxy } from '@thv/resources/kinds/mcp-remote-proxy/schema'
import type { OperatorSettings } from '../../operator-settings.ts'
import { serviceHost, workloadUrl } from '../../status/workload-url.ts'
import type { Resolved, RunConfigDocument } from '../../workload/contribution.ts'
import type { Lookup } from '../../workload/lookup.ts'
import { type LiveFacts, planWorkload } from '../../workload/plan-workload.ts'
import { proxyNames } from '../../workload/pod/names.ts'
import { resolveAudit } from '../../workload/resolve/audit.ts'
import { resolveAuthz } from '../../workload/resolve/authz.ts'
import { resolveRemoteCaBundle } from '../../workload/resolve/ca-bundle.ts'
import { resolveExternalAuth } from '../../workload/resolve/external-auth.ts'
import { resolveGroupRef } from '../../workload/resolve/group-ref.ts'
import { resolveHeaderForward } from '../../workload/resolve/header-forward.ts'
import { resolveOidc } from '../../workload/resolve/oidc.ts'
import { resolveRemoteUrl } from '../../workload/resolve/remote-url.ts'
import { resolveSessionStorage } from '../../workload/resolve/session-storage.ts'
import { resolveTelemetry } from '../../workload/resolve/telemetry.ts'
import { resolveToolConfig } from '../../workload/resolve/tool-config.ts'
import type { WorkloadPlan } from '../../workload/workload-plan.ts'

export interface RemoteProxyPlanInput {
  readonly proxy: MCPRemoteProxy
  readonly lookup: Lookup
  readonly settings: OperatorSettings
  readonly live: LiveFacts
  readonly checkPolicies: PolicyChecker
  readonly now: number
}

/** Everything that one MCPRemoteProxy needs, and what to tell of it. Pure. Nobody ever dials the remote server from here. */
export function planMcpRemoteProxy(input: RemoteProxyPlanInput): WorkloadPlan {
  const { proxy, lookup, settings, live, checkPolicies, now } = input
  const { name, namespace = '' } = proxy.metadata
  const { spec, problems } = normaliseMcpRemoteProxy(proxy)
  const address = { kind: 'MCPRemoteProxy', name, namespace, clusterDomain: settings.clusterDomain } as const
  const host = serviceHost(address)
  const place = { name, namespace, lookup, now, clusterDomain: settings.clusterDomain }

  const oidc = resolveOidc({ ...place, oidcConfig: spec.oidcConfig, serviceHost: host, proxyPort: spec.proxyPort })
  const resolved: Resolved[] = [
    resolveRemoteUrl({ ...spec, ...settings }),
    resolveRemoteCaBundle({ caBundleRef: spec.caBundleRef, lookup, now }),
    resolveHeaderForward({ headerForward: spec.headerForward, name, lookup }),
    oidc,
    resolveAuthz({ authzConfig: spec.authzConfig, checkPolicies, lookup }),
    resolveExternalAuth({
      ...place,
      ref: spec.externalAuthConfigRef,
      authServerRef: spec.authServerRef,
      kind: 'MCPRemoteProxy',
      transport: spec.transport,
      oidc: spec.oidcConfig && !oidc.ok ? 'unresolved' : oidc.contribution?.runConfig?.oidc_config,
      resourceUrl: `http://${host}:${spec.proxyPort}`,
    }),
    resolveSessionStorage({
      ...settings,
      sessionStorage: spec.sessionStorage,
      replicas: spec.replicas ?? live.deployment?.spec?.replicas,
      lookup,
    }),
    resolveToolConfig({ toolConfigRef: spec.toolConfigRef, lookup }),
    resolveTelemetry({ telemetry: spec.telemetry, name, namespace }),
    resolveAudit({ audit: spec.audit }),
    resolveGroupRef({ groupRef: spec.groupRef, lookup }),
  ]
  return planWorkload({
    kind: 'MCPRemoteProxy',
    object: proxy,
    spec,
    problems,
    resolved,
    document: documentOf(name, spec, settings),
    protections: {
      oidc_config: spec.oidcConfig !== undefined,
      authz_config: spec.authzConfig !== undefined,
      audit_config: spec.audit.enabled,
      tools_filter: (lookup.toolConfig(spec.toolConfigRef?.name ?? '')?.spec?.toolsFilter?.length ?? 0) > 0,
      embedded_auth_server_config:
        spec.authServerRef !== undefined ||
        lookup.externalAuthConfig(spec.externalAuthConfigRef?.name ?? '')?.spec.type === 'embeddedAuthServer',
    },
    conditions: [authenticated(spec, oidc)],
    networkPolicy: undefined,
    unwanted: spec.serviceAccount === undefined ? [] : [{ kind: 'ServiceAccount', name: proxyNames('MCPRemoteProxy', name).runnerAccount }],
    replicas: spec.replicas,
    restartedAt: undefined,
    url: workloadUrl({ ...address, proxyMode: spec.transport, proxyPort: spec.proxyPort }),
    settings,
    lookup,
    live,
  })
}

function documentOf(name: string, spec: CanonicalMCPRemoteProxySpec, settings: OperatorSettings): RunConfigDocument {
  return {
    schema_version: 'v0.1.0',
    name,
    container_name: name,
    base_name: name,
    transport: spec.transport,
    proxy_mode: spec.transport,
    host: settings.proxyHost,
    port: spec.proxyPort,
    ...(spec.trustProxyHeaders && { trust_proxy_headers: true }),
    ...(spec.endpointPrefix !== undefined && { endpoint_prefix: spec.endpointPrefix }),
  }
}

function authenticated(spec: CanonicalMCPRemoteProxySpec, oidc: Resolved): ConditionUpdate {
  const type = MCPRemoteProxyCondition.Authenticated
  if (spec.oidcConfig === undefined && spec.authServerRef === undefined) {
    const message = 'the proxy lets everybody in who can reach it: set spec.oidcConfig'
    return { type, status: 'False', reason: MCPRemoteProxyReason.NoIncomingAuth, message }
  }
  if (!oidc.ok) {
    const message = 'nobody can be authenticated as spec.oidcConfig is: see the other conditions'
    return { type, status: 'False', reason: MCPRemoteProxyReason.AuthInvalid, message }
  }
  return { type, status: 'True', reason: MCPRemoteProxyReason.AuthValid, message: 'clients must prove who they are' }
}
