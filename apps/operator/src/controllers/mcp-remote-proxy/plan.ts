import type { PolicyChecker } from '@thv/authz/policy-syntax'
import { MCPRemoteProxyCondition, MCPRemoteProxyReason } from '@thv/resources/kinds/mcp-remote-proxy/constants'
import { type CanonicalMCPRemoteProxySpec, normaliseMcpRemoteProxy } from '@thv/resources/kinds/mcp-remote-proxy/normalise'
import type { MCPRemoteProxy } from '@thv/resources/kinds/mcp-remote-proxy/schema'
import { workloadUrl } from '@thv/resources/shared/workload-url'
import type { WorkloadPlan } from '../../deployment/deployment-plan.ts'
import type { OperatorSettings } from '../../operator-settings.ts'
import type { Resolved, RunConfigDocument } from '../../proxy/contribution.ts'
import { proxyNames } from '../../proxy/names.ts'
import { type LiveFacts, planWorkload } from '../../proxy/plan-proxy.ts'
import { serviceHosts } from '../../proxy/proxy-url.ts'
import { authenticatedBy } from '../../proxy/resolve/authenticated.ts'
import { resolveRemoteCaBundle } from '../../proxy/resolve/ca-bundle.ts'
import { resolveHeaderForward } from '../../proxy/resolve/header-forward.ts'
import { resolveRateLimit } from '../../proxy/resolve/rate-limit.ts'
import { resolveRemoteUrl } from '../../proxy/resolve/remote-url.ts'
import { resolveSharedBlocks } from '../../proxy/resolve/shared-blocks.ts'
import type { Lookup } from '../../references/lookup.ts'

export interface RemoteProxyPlanInput {
  readonly proxy: MCPRemoteProxy
  readonly lookup: Lookup
  readonly settings: OperatorSettings
  readonly live: LiveFacts
  readonly checkPolicies: PolicyChecker
  readonly now: number
}

/** The objects and conditions of one MCPRemoteProxy. Pure. The operator never dials the remote server. */
export function planMcpRemoteProxy(input: RemoteProxyPlanInput): WorkloadPlan {
  const { proxy, lookup, settings, live, now } = input
  const { name, namespace = '' } = proxy.metadata
  const { spec, problems } = normaliseMcpRemoteProxy(proxy)
  const scale = live.deployment?.spec?.replicas
  const shared = resolveSharedBlocks({ ...input, kind: 'MCPRemoteProxy', name, namespace, spec, replicas: spec.replicas ?? scale })
  const isOpen = spec.oidcConfig === undefined && spec.authServerRef === undefined
  const resolved: Resolved[] = [
    resolveRemoteUrl({ ...spec, ...settings }),
    resolveRemoteCaBundle({ caBundleRef: spec.caBundleRef, lookup, now }),
    resolveHeaderForward({ headerForward: spec.headerForward, name, lookup }),
    ...shared.resolved,
    ...(spec.rateLimiting === undefined
      ? []
      : [
          resolveRateLimit({
            rateLimiting: spec.rateLimiting,
            namespace,
            replicas: spec.replicas ?? scale,
            hasSharedStore: shared.hasSharedStore,
            isAuthenticated: spec.oidcConfig !== undefined || spec.authServerRef !== undefined,
          }),
        ]),
  ]
  return planWorkload({
    kind: 'MCPRemoteProxy',
    object: proxy,
    spec,
    problems,
    resolved,
    document: documentOf(proxy, spec, settings),
    protections: { ...shared.protections, rate_limit_config: spec.rateLimiting !== undefined },
    conditions: [isOpen ? NO_INCOMING_AUTH : authenticatedBy(shared.oidc)],
    networkPolicy: undefined,
    unwanted: spec.serviceAccount === undefined ? [] : [{ kind: 'ServiceAccount', name: proxyNames('MCPRemoteProxy', name).runnerAccount }],
    replicas: spec.replicas,
    restartedAt: undefined,
    url: workloadUrl({
      kind: 'MCPRemoteProxy',
      name,
      namespace,
      clusterDomain: settings.clusterDomain,
      proxyMode: spec.transport,
      proxyPort: spec.proxyPort,
    }),
    settings,
    lookup,
    live,
  })
}

function documentOf({ metadata }: MCPRemoteProxy, spec: CanonicalMCPRemoteProxySpec, settings: OperatorSettings): RunConfigDocument {
  const { name, namespace = '' } = metadata
  return {
    schema_version: 'v0.1.0',
    name,
    container_name: name,
    base_name: name,
    transport: spec.transport,
    proxy_mode: spec.transport,
    host: settings.proxyHost,
    port: spec.proxyPort,
    service_hosts: serviceHosts({ kind: 'MCPRemoteProxy', name, namespace, clusterDomain: settings.clusterDomain }),
    ...(spec.allowedHosts.length > 0 && { allowed_hosts: spec.allowedHosts }),
    ...(spec.trustProxyHeaders && { trust_proxy_headers: true }),
    ...(spec.trustedProxies.length > 0 && { trusted_proxies: spec.trustedProxies }),
    ...(spec.endpointPrefix !== undefined && { endpoint_prefix: spec.endpointPrefix }),
  }
}

const NO_INCOMING_AUTH = {
  type: MCPRemoteProxyCondition.Authenticated,
  status: 'False',
  reason: MCPRemoteProxyReason.NoIncomingAuth,
  message: 'Anyone who can reach the proxy can use it. Set spec.oidcConfig to require authentication.',
} as const
