import { checkPolicies } from '@thv/authz/policy-syntax'
import { normaliseMcpRemoteProxy } from '@thv/resources/kinds/mcp-remote-proxy/normalise'
import type { MCPRemoteProxy } from '@thv/resources/kinds/mcp-remote-proxy/schema'
import { normaliseMcpServer } from '@thv/resources/kinds/mcp-server/normalise'
import type { MCPServer } from '@thv/resources/kinds/mcp-server/schema'
import { fixturesOf } from '@thv/resources/testing/fixtures'
import { createCertificate } from '@thv/testkit/cluster/identity/certificate'
import { describe, expect, it } from 'vitest'
import type { Lookup } from '../../references/lookup.ts'
import { fixtureLookup } from '../../testing/fixture-namespace.ts'
import type { Contribution, Resolved } from '../contribution.ts'
import type { ProxyKind } from '../names.ts'
import { joinRunConfig } from '../run-config-document.ts'
import { resolveAudit } from './audit.ts'
import { resolveAuthz } from './authz.ts'
import { resolveRemoteCaBundle } from './ca-bundle.ts'
import { resolveGroupRef } from './group-ref.ts'
import { resolveHeaderForward } from './header-forward.ts'
import { resolveOidc } from './oidc.ts'
import { resolveRateLimit } from './rate-limit.ts'
import { resolveRemoteUrl } from './remote-url.ts'
import { resolveSessionStorage } from './session-storage.ts'
import { resolveTelemetry } from './telemetry.ts'
import { runnerReads, snapshot } from './testing/snapshot.ts'
import { resolveToolConfig } from './tool-config.ts'

const CA = createCertificate({ commonName: 'company', ca: true }).certPem
const POLICIES = JSON.stringify({ version: '1.0', type: 'cedarv1', cedar: { policies: ['permit(principal, action, resource);'] } })

/** A namespace in which whatever a manifest may name is there. */
const full: Lookup = {
  ...snapshot({
    configMaps: {
      'company-ca': { 'root.pem': CA, 'ca.crt': CA },
      'company-oidc': { issuer: 'https://idp.example.com', 'settings.json': '{"audience":"a"}' },
      'ticket-policies': { 'policies.json': POLICIES, 'authz.json': POLICIES },
    },
  }),
  secret: () => ({ uid: 'u', resourceVersion: '1', keys: { has: () => true } as unknown as ReadonlySet<string> }),
  toolConfig: (name) => ({
    apiVersion: 'toolhive.stacklok.dev/v1beta1',
    kind: 'MCPToolConfig',
    metadata: { name },
    spec: { toolsFilter: ['t'] },
  }),
  externalAuthConfig: fixtureLookup.externalAuthConfig,
  group: (name) => ({ apiVersion: 'toolhive.stacklok.dev/v1beta1', kind: 'MCPGroup', metadata: { name }, status: { phase: 'Ready' } }),
}

const place = { namespace: 'team', serviceHost: 'mcp-x-proxy.team.svc.cluster.local' }

function serverParts(server: MCPServer, lookup: Lookup): Record<string, Resolved> {
  const { spec } = normaliseMcpServer(server)
  const { name = '' } = server.metadata
  const sessionStorage = resolveSessionStorage({
    ...{ name, namespace: 'team' },
    sessionStorage: spec.sessionStorage,
    defaultRedis: undefined,
    replicas: spec.replicas,
    lookup,
  })
  const hasSharedStore = sessionStorage.ok && sessionStorage.contribution.runConfig?.scaling_config?.session_redis !== undefined
  return {
    ...commonParts(spec, { kind: 'MCPServer', name, lookup }),
    sessionStorage,
    toolConfig: resolveToolConfig({ toolConfigRef: spec.toolConfigRef, tools: spec.tools, lookup }),
    rateLimit: resolveRateLimit({
      rateLimiting: spec.rateLimiting,
      namespace: 'team',
      replicas: spec.replicas,
      hasSharedStore,
      isAuthenticated: spec.oidcConfig !== undefined || spec.externalAuthConfigRef !== undefined || spec.authServerRef !== undefined,
    }),
  }
}

function proxyParts(proxy: MCPRemoteProxy, lookup: Lookup): Record<string, Resolved> {
  const { spec } = normaliseMcpRemoteProxy(proxy)
  const { name = '' } = proxy.metadata
  return {
    ...commonParts(spec, { kind: 'MCPRemoteProxy', name, lookup }),
    sessionStorage: resolveSessionStorage({
      ...{ name, namespace: 'team' },
      sessionStorage: spec.sessionStorage,
      defaultRedis: undefined,
      replicas: spec.replicas,
      lookup,
    }),
    toolConfig: resolveToolConfig({ toolConfigRef: spec.toolConfigRef, lookup }),
    remoteUrl: resolveRemoteUrl({ ...spec, remotes: { denyPrivate: false, allowLoopback: false, blockedAddresses: [] } }),
    caBundle: resolveRemoteCaBundle({ caBundleRef: spec.caBundleRef, lookup }),
    headerForward: resolveHeaderForward({ headerForward: spec.headerForward, name, lookup }),
  }
}

type CommonSpec = Pick<
  ReturnType<typeof normaliseMcpServer>['spec'],
  'oidcConfig' | 'authzConfig' | 'telemetry' | 'audit' | 'groupRef' | 'proxyPort'
>

function commonParts(
  spec: CommonSpec,
  { kind, name, lookup }: { kind: ProxyKind; name: string; lookup: Lookup },
): Record<string, Resolved> {
  return {
    oidc: resolveOidc({ ...place, oidcConfig: spec.oidcConfig, name, proxyPort: spec.proxyPort, lookup }),
    authz: resolveAuthz({ kind, name, authzConfig: spec.authzConfig, checkPolicies, lookup }),
    telemetry: resolveTelemetry({
      telemetry: spec.telemetry,
      sendsAudit: spec.audit.enabled && spec.audit.otlp,
      name,
      namespace: 'team',
      lookup,
    }),
    audit: resolveAudit({ audit: spec.audit, telemetry: spec.telemetry }),
    group: resolveGroupRef({ groupRef: spec.groupRef, lookup }),
  }
}

const cases = [
  ...fixturesOf('mcpservers').map(({ file, manifest }) => ({
    title: `MCPServer ${manifest.metadata.name} of ${file}`,
    parts: (lookup: Lookup) => serverParts(manifest as unknown as MCPServer, lookup),
  })),
  ...fixturesOf('mcpremoteproxies').map(({ file, manifest }) => ({
    title: `MCPRemoteProxy ${manifest.metadata.name} of ${file}`,
    parts: (lookup: Lookup) => proxyParts(manifest as unknown as MCPRemoteProxy, lookup),
  })),
]

const duplicates = (names: readonly string[]) => names.filter((name, index) => names.indexOf(name) !== index)

describe('the incoming side of every manifest of the fixtures', () => {
  it.each(cases)('$title: resolves where all that it names is there, and the runner reads it', ({ parts }) => {
    const contributions: Contribution[] = Object.entries(parts(full)).map(([part, resolved]) => {
      if (!resolved.ok) throw new Error(`${part} is blocked: ${JSON.stringify(resolved.blockers)}`)
      return resolved.contribution
    })
    runnerReads({ runConfig: joinRunConfig({}, contributions) })
    expect(duplicates(contributions.flatMap(({ env = [] }) => env.map(({ name }) => name)))).toEqual([])
    expect(duplicates(contributions.flatMap(({ volumes = [] }) => volumes.map(({ name }) => name)))).toEqual([])
    expect(duplicates(contributions.flatMap(({ volumeMounts = [] }) => volumeMounts.map(({ mountPath }) => mountPath)))).toEqual([])
  })

  it.each(cases)('$title: in an empty namespace each part resolves as before, or says what is missing', ({ parts }) => {
    const here = parts(full)
    for (const [part, resolved] of Object.entries(parts(snapshot()))) {
      if (resolved.ok && part !== 'group' && part !== 'oidc' && part !== 'caBundle') expect(resolved).toEqual(here[part])
      else if (!resolved.ok) for (const { message } of resolved.blockers) expect(message).toMatch(/: (create|add) /)
    }
  })
})
