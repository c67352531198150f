import { normaliseMcpRemoteProxy } from '@thv/resources/kinds/mcp-remote-proxy/normalise'
import type { MCPRemoteProxy } from '@thv/resources/kinds/mcp-remote-proxy/schema'
import { normaliseMcpServer } from '@thv/resources/kinds/mcp-server/normalise'
import type { MCPServer } from '@thv/resources/kinds/mcp-server/schema'
import { secretVariable } from '../../deployment/contribution.ts'
import type { OperatorSettings } from '../../operator-settings.ts'
import type { Lookup, SecretFacts } from '../../references/lookup.ts'
import type { Contribution } from '../contribution.ts'
import type { ProxyKind } from '../names.ts'
import { networkPolicy } from '../network/network-policy.ts'
import { resolvePermissionProfile } from '../network/permission-profile.ts'
import { type ProxyDeploymentInput, proxyDeployment } from '../proxy-deployment.ts'
import { workloadAccess } from '../rbac.ts'
import { resolveMcpPod } from '../server-pod/server-pod-patch.ts'
import { aliasService, proxyService } from '../services.ts'

/* Workloads of which the golden files show all objects. */

type Settings = Pick<
  OperatorSettings,
  'runnerImage' | 'defaultImagePullSecrets' | 'platform' | 'packageImages' | 'podSecurity' | 'podNamespace' | 'operatorAccount'
>

export const SETTINGS: Settings = {
  runnerImage: 'example.com/proxyrunner:1',
  defaultImagePullSecrets: [],
  platform: 'kubernetes',
  podSecurity: 'privileged',
  podNamespace: 'toolhive-system',
  operatorAccount: 'toolhive-operator',
  packageImages: { npx: 'node:24', uvx: 'uv:1' },
}

export function secretLookup(secrets: Readonly<Record<string, readonly string[]>>): Pick<Lookup, 'secret' | 'configMap'> {
  return {
    secret: (name): SecretFacts | undefined => {
      const keys = secrets[name]
      return keys && { uid: `uid-${name}`, resourceVersion: '7', keys: new Set(keys) }
    },
    configMap: () => undefined,
  }
}

export interface WorkloadCase {
  readonly name: string
  readonly kind: ProxyKind
  readonly resource: string
  readonly spec: Record<string, unknown>
  readonly settings?: Partial<Settings>
  readonly deployment?: Partial<ProxyDeploymentInput>
}

const OIDC: Contribution = {
  env: [secretVariable('TOOLHIVE_OIDC_CLIENT_SECRET', { name: 'oidc', key: 'secret' })],
  volumes: [{ name: 'oidc-ca-bundle-ca', configMap: { name: 'ca', items: [{ key: 'ca.crt', path: 'ca.crt' }] } }],
  volumeMounts: [{ name: 'oidc-ca-bundle-ca', mountPath: '/config/certs/ca', readOnly: true }],
  secrets: ['oidc'],
}

const HEADER: Contribution = {
  env: [secretVariable('TOOLHIVE_SECRET_HEADER_FORWARD_X_KEY_CATALOG', { name: 'key', key: 'value' })],
}

export const WORKLOAD_CASES: readonly WorkloadCase[] = [
  { name: 'stdio-minimal', kind: 'MCPServer', resource: 'demo', spec: { image: 'example.com/demo:1' } },
  {
    name: 'streamable-http-full',
    kind: 'MCPServer',
    resource: 'weather',
    spec: {
      image: 'example.com/weather:2',
      transport: 'streamable-http',
      proxyPort: 8088,
      mcpPort: 9000,
      args: ['--verbose'],
      env: [
        { name: 'LOG_LEVEL', value: 'debug' },
        { name: 'API_TOKEN', value: 'shadowed' },
        { name: 'MCP_PORT', value: 'shadowed' },
      ],
      secrets: [
        { name: 'weather', key: 'token', targetEnvName: 'API_TOKEN' },
        { name: 'weather', key: 'PASSWORD' },
      ],
      volumes: [{ name: 'models', hostPath: '/srv/models', mountPath: '/models', readOnly: true }],
      resources: { limits: { cpu: 1, memory: '256Mi' }, requests: { cpu: '100m' } },
      permissionProfile: { type: 'builtin', name: 'network' },
      serviceAccount: 'weather-account',
      serviceType: 'LoadBalancer',
      sessionAffinity: 'None',
      backendReplicas: 2,
      replicas: 3,
      resourceOverrides: {
        proxyDeployment: {
          labels: { team: 'a', app: 'not-this' },
          annotations: { note: 'kept' },
          podTemplateMetadataOverrides: {
            labels: { team: 'a', 'toolhive-name': 'not-this' },
            annotations: { 'sidecar.istio.io/inject': 'true' },
          },
          env: [
            { name: 'TOOLHIVE_DEBUG', value: 'true' },
            { name: 'HOME', value: '/tmp/home' },
            { name: 'TOOLHIVE_RUNTIME', value: 'local' },
          ],
          imagePullSecrets: [{ name: 'mine' }],
        },
        proxyService: { labels: { team: 'a' }, annotations: { lb: 'internal' } },
      },
      podTemplateSpec: {
        metadata: { labels: { team: 'a' }, annotations: { note: 'kept' }, creationTimestamp: null },
        spec: {
          nodeSelector: { disk: 'ssd' },
          imagePullSecrets: [{ name: 'theirs' }],
          volumes: [{ name: 'cache', emptyDir: { sizeLimit: '1Gi' } }],
          containers: [
            { name: 'sidecar', image: 'example.com/sidecar:1', envFrom: [{ secretRef: { name: 'sidecar' } }] },
            {
              name: 'mcp',
              resources: { limits: { memory: '1Gi' } },
              env: [
                { name: 'LOG_LEVEL', value: 'shadowed' },
                { name: 'REGION', value: 'eu' },
              ],
              volumeMounts: [{ name: 'cache', mountPath: '/cache' }],
            },
          ],
        },
      },
    },
    settings: { defaultImagePullSecrets: ['default', 'mine'] },
    deployment: { contributions: [OIDC], generation: 12, replicas: 3, restartedAt: '2026-11-16T02:00:00Z', secretsHash: 'c0ffee' },
  },
  {
    name: 'sse',
    kind: 'MCPServer',
    resource: 'feed',
    spec: { image: 'example.com/feed:1', transport: 'sse', permissionProfile: { name: 'none' }, replicas: 0 },
    deployment: { replicas: 0 },
  },
  { name: 'openshift', kind: 'MCPServer', resource: 'demo', spec: { image: 'example.com/demo:1' }, settings: { platform: 'openshift' } },
  { name: 'remote-proxy-minimal', kind: 'MCPRemoteProxy', resource: 'catalog', spec: { remoteUrl: 'https://mcp.example.com' } },
  {
    name: 'remote-proxy-pod-template',
    kind: 'MCPRemoteProxy',
    resource: 'catalog',
    spec: {
      remoteUrl: 'https://mcp.example.com',
      resources: { limits: { memory: '128Mi' } },
      resourceOverrides: { proxyDeployment: { env: [{ name: 'TOOLHIVE_DEBUG', value: 'true' }] } },
      podTemplateSpec: {
        metadata: { labels: { team: 'a' }, annotations: { 'sidecar.istio.io/inject': 'true' } },
        spec: {
          nodeSelector: { disk: 'ssd' },
          tolerations: [{ key: 'dedicated', operator: 'Exists' }],
          securityContext: { runAsUser: 2000, fsGroup: 2000 },
          priorityClassName: 'high',
          volumes: [{ name: 'extra', emptyDir: {} }],
          containers: [
            {
              name: 'toolhive',
              env: [
                { name: 'TOOLHIVE_DEBUG', value: 'shadowed' },
                { name: 'HTTPS_PROXY', value: 'http://egress.example:3128' },
              ],
              resources: { limits: { memory: '512Mi' } },
              volumeMounts: [{ name: 'extra', mountPath: '/extra' }],
            },
            { name: 'sidecar', image: 'example.com/sidecar:1', securityContext: { readOnlyRootFilesystem: false } },
          ],
        },
      },
    },
    deployment: { contributions: [HEADER] },
  },
]

/** Every object of a workload but the ConfigMap, and the pod patch that the runner receives. */
export function objectsOf({ kind, resource, spec, settings, deployment }: WorkloadCase) {
  const all = { ...SETTINGS, ...settings }
  const base = { kind, name: resource, namespace: 'team-a', settings: all }
  const common = { runConfigChecksum: 'abc123', generation: 1, contributions: [], replicas: undefined, ...deployment }
  if (kind === 'MCPRemoteProxy') {
    const canonical = normaliseMcpRemoteProxy({ spec: spec as MCPRemoteProxy['spec'] }).spec
    const proxy = proxyDeployment({ ...base, ...common, spec: canonical })
    return { ...servicesOf({ ...base, spec: canonical }), access: workloadAccess({ ...base, spec: canonical }), ...proxy }
  }
  const canonical = normaliseMcpServer({ spec: spec as MCPServer['spec'] }).spec
  const lookup = secretLookup({ weather: ['token', 'PASSWORD'] })
  const pod = resolveMcpPod({ ...base, spec: canonical, lookup, restartedAt: common.restartedAt })
  const { profile } = resolvePermissionProfile({ profile: canonical.permissionProfile, lookup })
  const proxy = proxyDeployment({ ...base, ...common, spec: canonical })
  return {
    pod,
    ...(profile && { networkPolicy: networkPolicy({ ...base, ...canonical, name: resource, profile }) }),
    access: workloadAccess({ ...base, spec: canonical }),
    ...servicesOf({ ...base, spec: canonical }),
    ...proxy,
  }
}

function servicesOf(input: Parameters<typeof proxyService>[0]) {
  return { service: proxyService(input), alias: aliasService(input).service }
}
