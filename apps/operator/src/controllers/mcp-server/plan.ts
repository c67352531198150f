import type { PolicyChecker } from '@thv/authz/policy-syntax'
import { type CanonicalMCPServerSpec, normaliseMcpServer } from '@thv/resources/kinds/mcp-server/normalise'
import { type MCPServer, mcpServerType } from '@thv/resources/kinds/mcp-server/schema'
import { workloadUrl } from '@thv/resources/shared/workload-url'
import type { WorkloadPlan } from '../../deployment/deployment-plan.ts'
import { type RegistryOfNamespace, resolveImage } from '../../enforcement/judge-image.ts'
import type { OperatorSettings } from '../../operator-settings.ts'
import type { Resolved, RunConfigDocument } from '../../proxy/contribution.ts'
import { serverLabels } from '../../proxy/labels.ts'
import { serverNames } from '../../proxy/names.ts'
import { networkPolicy } from '../../proxy/network/network-policy.ts'
import { NO_PERMISSIONS, resolvePermissionProfile } from '../../proxy/network/permission-profile.ts'
import { type LiveFacts, planWorkload } from '../../proxy/plan-proxy.ts'
import { serviceHosts } from '../../proxy/proxy-url.ts'
import { authenticatedBy } from '../../proxy/resolve/authenticated.ts'
import { resolveRateLimit } from '../../proxy/resolve/rate-limit.ts'
import { resolveSharedBlocks } from '../../proxy/resolve/shared-blocks.ts'
import { resolveMcpPod } from '../../proxy/server-pod/server-pod-patch.ts'
import type { Lookup } from '../../references/lookup.ts'
import { planReplicas } from './replicas.ts'
import { restartTime } from './restart.ts'

export interface ServerPlanInput {
  readonly server: MCPServer
  readonly lookup: Lookup
  readonly settings: OperatorSettings
  readonly live: LiveFacts
  readonly checkPolicies: PolicyChecker
  readonly now: number
  /** In the namespace of the server. Undefined: none. */
  readonly registries?: readonly RegistryOfNamespace[] | undefined
}

/** Everything that one MCPServer needs, and what to tell of it. Pure. */
export function planMcpServer(input: ServerPlanInput): WorkloadPlan {
  const { server, lookup, settings, live } = input
  const { name, namespace = '' } = server.metadata
  const { spec: asked, problems } = normaliseMcpServer(server)
  const scale = live.deployment?.spec?.replicas
  // One proxy needs no shared store, and without one a stdio server has one proxy.
  const wanted = asked.transport === 'stdio' ? 1 : (asked.replicas ?? scale)
  const shared = resolveSharedBlocks({ ...input, kind: 'MCPServer', name, namespace, spec: asked, replicas: wanted })
  const { hasSharedStore } = shared
  const replicas = planReplicas(asked, { scale, hasSharedStore })
  const spec: CanonicalMCPServerSpec = {
    ...asked,
    ...(replicas.backendReplicas !== undefined && { backendReplicas: replicas.backendReplicas }),
  }
  const profile = resolvePermissionProfile({ profile: spec.permissionProfile, podTemplateSpec: spec.podTemplateSpec, lookup })
  const restartedAt = restartTime(server)
  const resolved: Resolved[] = [
    resolveMcpPod({ name, namespace, spec, settings, restartedAt, lookup }),
    resolveImage({ server, image: spec.image, registries: input.registries ?? [], runs: live.deployment !== undefined }),
    profile,
    ...shared.resolved,
    resolveRateLimit({
      rateLimiting: spec.rateLimiting,
      namespace,
      replicas: replicas.wanted,
      hasSharedStore,
      isAuthenticated: spec.oidcConfig !== undefined || spec.externalAuthConfigRef !== undefined || spec.authServerRef !== undefined,
    }),
  ]
  return planWorkload({
    kind: 'MCPServer',
    object: server,
    spec,
    problems,
    resolved,
    document: documentOf(server, spec, { settings, podsPerRunner: replicas.podsPerRunner }),
    protections: { ...shared.protections, rate_limit_config: spec.rateLimiting !== undefined },
    conditions: [replicas.condition, ...(spec.oidcConfig === undefined ? [] : [authenticatedBy(shared.oidc)])],
    networkPolicy:
      spec.permissionProfile === undefined
        ? undefined
        : networkPolicy({
            name,
            namespace,
            transport: spec.transport,
            mcpPort: spec.mcpPort,
            // A profile that cannot be resolved allows nothing until it can.
            profile: profile.profile ?? NO_PERMISSIONS,
            platform: settings.platform,
          }),
    unwanted: [
      ...(spec.permissionProfile === undefined ? [{ kind: 'NetworkPolicy', name: serverNames(name).networkPolicy } as const] : []),
      ...(spec.serviceAccount === undefined ? [] : [{ kind: 'ServiceAccount', name: serverNames(name).account } as const]),
    ],
    replicas: replicas.applied,
    restartedAt,
    url: workloadUrl({
      kind: 'MCPServer',
      name,
      namespace,
      clusterDomain: settings.clusterDomain,
      proxyMode: spec.proxyMode,
      proxyPort: spec.proxyPort,
    }),
    settings,
    lookup,
    live,
  })
}

/** The same for all who reconcile: what the spec says without looking at anything else. */
function documentOf(
  server: MCPServer,
  spec: CanonicalMCPServerSpec,
  { settings, podsPerRunner }: { settings: OperatorSettings; podsPerRunner: number | undefined },
): RunConfigDocument {
  const { name, namespace = '', uid } = server.metadata
  return {
    schema_version: 'v0.1.0',
    name,
    container_name: name,
    base_name: name,
    ...(spec.args.length > 0 && { cmd_args: spec.args }),
    transport: spec.transport,
    proxy_mode: spec.proxyMode,
    host: settings.proxyHost,
    port: spec.proxyPort,
    service_hosts: serviceHosts({ kind: 'MCPServer', name, namespace, clusterDomain: settings.clusterDomain }),
    ...(spec.allowedHosts.length > 0 && { allowed_hosts: spec.allowedHosts }),
    target_port: spec.mcpPort,
    container_labels: serverLabels({ name, transport: spec.transport, proxyPort: spec.proxyPort }),
    ...(uid !== undefined && {
      owner: { api_version: `${mcpServerType.group}/${mcpServerType.version}`, kind: mcpServerType.kind, name, uid },
    }),
    ...(spec.trustProxyHeaders && { trust_proxy_headers: true }),
    ...(spec.trustedProxies.length > 0 && { trusted_proxies: spec.trustedProxies }),
    ...(spec.endpointPrefix !== undefined && { endpoint_prefix: spec.endpointPrefix }),
    ...(spec.backendReplicas !== undefined && {
      scaling_config: { backend_replicas: spec.backendReplicas, ...(podsPerRunner !== undefined && { pods_per_runner: podsPerRunner }) },
    }),
  }
}
