import { listedHashes } from '@thv/catalog/images/image-hashes'
import type { MCPExternalAuthConfig } from '@thv/resources/kinds/mcp-external-auth-config/schema'
import type { MCPServer } from '@thv/resources/kinds/mcp-server/schema'
import { REGISTRY_NAME_LABEL, type RegistryOfNamespace } from '../../../enforcement/judge-image.ts'
import type { OperatorSettings } from '../../../operator-settings.ts'
import { snapshot } from '../../../proxy/resolve/testing/snapshot.ts'
import type { Lookup } from '../../../references/lookup.ts'

/* MCPServers whose plans the golden files show. */

type Spec = MCPServer['spec']

export interface ServerCase {
  readonly spec: Spec
  /** By default everything that the fixtures name is there. */
  readonly lookup?: Lookup
  readonly name?: string
  readonly settings?: Partial<OperatorSettings>
  readonly registries?: readonly RegistryOfNamespace[]
  readonly labels?: Readonly<Record<string, string>>
}

const image = 'ghcr.io/example/fetch:1.4.0'

/** Everything that this version can do. */
const full = {
  image,
  proxyPort: 9000,
  args: ['serve', '--read-only'],
  env: [{ name: 'LOG_LEVEL', value: 'info' }],
  secrets: [{ name: 'github', key: 'token', targetEnvName: 'GITHUB_TOKEN' }],
  volumes: [{ name: 'data', hostPath: '/srv/data', mountPath: '/data', readOnly: true }],
  resources: { limits: { cpu: 1, memory: '256Mi' }, requests: { cpu: '250m', memory: '64Mi' } },
  permissionProfile: { type: 'configmap', name: 'github-profile', key: 'profile.json' },
  podTemplateSpec: {
    spec: { nodeSelector: { disktype: 'ssd' }, containers: [{ name: 'mcp', resources: { limits: { memory: '512Mi' } } }] },
  },
  resourceOverrides: {
    proxyDeployment: {
      annotations: { 'example.com/owner': 'platform' },
      labels: { team: 'platform' },
      podTemplateMetadataOverrides: { annotations: { 'example.com/inject': 'true' }, labels: { tier: 'tools' } },
      env: [{ name: 'HTTPS_PROXY', value: 'http://proxy.example.com:3128' }],
      imagePullSecrets: [{ name: 'registry-credentials' }],
    },
    proxyService: { annotations: { 'example.com/dns': 'fetch.mcp.example.com' }, labels: { exposed: 'yes' } },
  },
  serviceAccount: 'fetch',
  groupRef: { name: 'engineering' },
  toolConfigRef: { name: 'read-only' },
  telemetry: { prometheus: { enabled: true } },
  replicas: 1,
  backendReplicas: 1,
  sessionStorage: { provider: 'memory' },
  sessionAffinity: 'None',
  serviceType: 'LoadBalancer',
  trustProxyHeaders: true,
  trustedProxies: ['10.0.0.0/8'],
  endpointPrefix: '/tools/fetch',
  allowedHosts: ['fetch.mcp.example.com'],
} as const satisfies Spec as unknown as Spec

/** Fields that are validated, resolved and written, and that no runner of this version implements: no pod may run. */
const guarded: Spec = {
  image,
  transport: 'streamable-http',
  oidcConfig: {
    type: 'inline',
    resourceUrl: 'https://fetch.mcp.example.com',
    inline: {
      issuer: 'https://login.example.com',
      audience: 'fetch',
      clientId: 'fetch-proxy',
      clientSecretRef: { name: 'fetch-proxy', key: 'client-secret' },
      caBundleRef: { configMapRef: { name: 'company-ca', key: 'root.pem' } },
    },
  },
  externalAuthConfigRef: { name: 'ticket-tokens' },
  authzConfig: { type: 'inline', inline: { policies: ['permit(principal, action, resource);'] } },
  rateLimiting: { perUser: { maxTokens: 60, refillPeriod: '1m' } },
  audit: { enabled: true },
  telemetry: { openTelemetry: { enabled: true, endpoint: 'otel.example.com:4318', tracing: { enabled: true } } },
  replicas: 2,
  sessionStorage: { provider: 'redis', address: 'redis:6379', passwordRef: { name: 'redis', key: 'password' } },
}

/** Of these the whole plan is shown. */
export const WHOLE: Readonly<Record<string, Spec>> = {
  'stdio-minimal': { image },
  'stdio-full': { ...full, transport: 'stdio', proxyMode: 'sse' },
  'streamable-http-minimal': { image, transport: 'streamable-http' },
  'streamable-http-full': { ...full, transport: 'streamable-http', mcpPort: 8090, replicas: 3 },
  'sse-minimal': { image, transport: 'sse' },
  'sse-full': { ...full, transport: 'sse', mcpPort: 8090 },
  guarded,
}

const inline = (settings: object): Spec => ({
  image,
  oidcConfig: { type: 'inline', inline: { issuer: 'https://login.example.com', ...settings } },
})
const fromConfigMap: Spec = { image, oidcConfig: { type: 'configMap', configMap: { name: 'oidc' } } }
const policiesFrom: Spec = { image, authzConfig: { type: 'configMap', configMap: { name: 'policies' } } }
const profileFrom: Spec = { image, permissionProfile: { type: 'configmap', name: 'profile', key: 'p' } }
const config = (name: string, data: Record<string, string>) => snapshot({ configMaps: { [name]: data } })
const nothing = snapshot()

function auth(spec: unknown): Lookup {
  return { ...nothing, externalAuthConfig: (name) => ({ metadata: { name }, spec }) as MCPExternalAuthConfig }
}
const provider = (name: string) => ({ name, type: 'oidc', oidcConfig: { issuerUrl: 'https://idp.example.com', clientId: 'c' } })
const login = (...names: string[]) => ({
  type: 'embeddedAuthServer',
  embeddedAuthServer: { issuer: 'https://mcp.example.com', upstreamProviders: names.map(provider) },
})
const http: Spec = { image, transport: 'streamable-http' }
const uses: Spec = { ...http, externalAuthConfigRef: { name: 'auth' } }
const logsIn: Spec = { ...http, authServerRef: { name: 'login' } }

/** One for each way to be refused. */
const listing = (name: string, ...images: string[]): RegistryOfNamespace => ({
  name,
  enforces: true,
  list: { hashes: new Set(images.flatMap(listedHashes)) },
})
const unread: RegistryOfNamespace = { name: 'unread', enforces: true, list: undefined }
const open: RegistryOfNamespace = { name: 'open', enforces: false, list: undefined }
const only = (name: string) => ({ [REGISTRY_NAME_LABEL]: name })

export const BLOCKED: Readonly<Record<string, ServerCase>> = {
  'an image that no registry lists': { spec: { image }, registries: [listing('a', 'other:1'), open, unread] },
  'an image that another registry lists than the label names': {
    spec: { image },
    registries: [listing('a', 'other:1'), listing('b', image)],
    labels: only('a'),
  },
  'a label that names no registry': { spec: { image }, registries: [listing('a', image)], labels: only('none') },
  'images that are not known yet': { spec: { image }, registries: [open, unread] },
  'two spellings that differ': { spec: { image, proxyPort: 1, port: 2 } },
  'a group that is no name': { spec: { image, groupRef: 3 as never } },
  'no ConfigMap with OIDC settings': { spec: fromConfigMap, lookup: nothing },
  'OIDC settings without an issuer': { spec: fromConfigMap, lookup: config('oidc', { audience: 'a' }) },
  'an issuer without TLS': { spec: inline({ issuer: 'http://login.example.com' }) },
  'an issuer that is no URL': { spec: inline({ issuer: 'login' }) },
  'a key URL that is none': { spec: inline({ jwksUrl: 'keys' }) },
  'an introspection URL that is none': { spec: inline({ introspectionUrl: 'introspect' }) },
  'a resource URL that is none': { spec: { image, oidcConfig: { resourceUrl: 'x', ...inline({}).oidcConfig } } },
  'no client secret': { spec: inline({ clientId: 'c', clientSecretRef: { name: 's', key: 'k' } }), lookup: nothing },
  'no CA bundle': { spec: inline({ caBundleRef: { name: 'ca' } }), lookup: nothing },
  'a CA bundle that is none': { spec: inline({ caBundleRef: { name: 'ca' } }), lookup: config('ca', { 'ca.crt': 'text' }) },
  'an outgoing config for clients': {
    spec: { image, oidcConfig: { type: 'external', external: { name: 'auth' } } },
    lookup: auth({ type: 'unauthenticated' }),
  },
  'no policies': { spec: policiesFrom, lookup: nothing },
  'policies that are no document': { spec: policiesFrom, lookup: config('policies', { 'authz.json': '[]' }) },
  'a policy that is no Cedar': { spec: { image, authzConfig: { type: 'inline', inline: { policies: ['allow everybody'] } } } },
  'a pod template with a field that pods do not have': { spec: { image, podTemplateSpec: { spec: { nodeSelektor: {} } } } },
  'no Secret': { spec: { image, secrets: [{ name: 's', key: 'k' }] }, lookup: nothing },
  'no permission profile': { spec: profileFrom, lookup: nothing },
  'a permission profile that is none': { spec: profileFrom, lookup: config('profile', { p: '{"nettwork": {}}' }) },
  'no Secret, beside a permission profile': {
    spec: { image, secrets: [{ name: 's', key: 'k' }], permissionProfile: { type: 'builtin', name: 'none' } },
    lookup: nothing,
  },
  'no tool config': { spec: { image, toolConfigRef: { name: 't' } }, lookup: nothing },
  'a tool config that is not valid': {
    spec: { image, toolConfigRef: { name: 't' } },
    lookup: snapshot({ toolConfigs: { t: { spec: { toolsOverride: { a: { name: 'c' }, b: { name: 'c' } } } } } }),
  },
  'no external auth config': { spec: uses, lookup: nothing },
  'an external auth config that is not valid': {
    spec: uses,
    lookup: auth({ type: 'tokenExchange', tokenExchange: { tokenUrl: 'x', audience: 'a' } }),
  },
  'an external auth config whose Secret is missing': {
    spec: uses,
    lookup: auth({ type: 'headerInjection', headerInjection: { headerName: 'X-Key', valueSecretRef: { name: 's', key: 'k' } } }),
  },
  'AWS signatures': {
    spec: uses,
    lookup: auth({ type: 'awsSts', awsSts: { region: 'eu-central-1', fallbackRoleArn: 'arn:aws:iam::123456789012:role/mcp' } }),
  },
  'no authorization server': { spec: logsIn, lookup: nothing },
  'an authorization server that is none': { spec: logsIn, lookup: auth({ type: 'unauthenticated' }) },
  'an authorization server whose tokens are not accepted': { spec: logsIn, lookup: auth(login('a')) },
  'limits per user without users': { spec: { image, rateLimiting: { perUser: { maxTokens: 1, refillPeriod: '1m' } } } },
  'limits that pods cannot keep together': {
    spec: { ...http, replicas: 2, rateLimiting: { shared: { maxTokens: 1, refillPeriod: '1m' } } },
  },
  'a Redis address with a scheme': { spec: { ...http, sessionStorage: { provider: 'redis', address: 'redis://redis:6379' } } },
  'a collector that nothing is sent to': { spec: { image, telemetry: { openTelemetry: { enabled: true, endpoint: 'otel:4318' } } } },
}

const profile = (network: object, rest: object = {}): ServerCase => ({
  spec: profileFrom,
  lookup: config('profile', { p: JSON.stringify({ ...rest, network }) }),
})

/** One for each condition that is set although nothing blocks. */
const redis = { provider: 'redis', address: 'redis:6379', passwordRef: { name: 'redis', key: 'password' } } as const

export const NOTABLE: Readonly<Record<string, ServerCase>> = {
  'nothing to tell': { spec: { image } },
  'an image that a registry lists': { spec: { image }, registries: [unread, listing('a', 'other:1'), listing('b', `${image}@sha256:1`)] },
  'a label that names a registry which does not enforce': {
    spec: { image },
    registries: [listing('a', 'other:1'), open],
    labels: only('open'),
  },
  'registries that do not enforce': { spec: { image }, registries: [open], labels: only('none') },
  'a group that is missing': { spec: { image, groupRef: 'g' }, lookup: nothing },
  'a group that is not ready': { spec: { image, groupRef: 'g' }, lookup: snapshot({ groups: { g: {} } }) },
  'a group': { spec: { image, groupRef: 'g' } },
  'more proxies than a stdio server can have': { spec: { image, replicas: 3 } },
  'more proxies than servers of a stdio server': { spec: { image, replicas: 3, backendReplicas: 2, sessionStorage: redis } },
  'no Service of its own name': { spec: { image }, name: 'mcp-demo' },
  'a Redis of the operator without its password': {
    spec: { image },
    lookup: nothing,
    settings: { defaultRedis: { address: 'redis:6379', passwordRef: { name: 'redis', key: 'password' } } },
  },
  'a Redis of the operator': { spec: { ...http, replicas: 2 }, settings: { defaultRedis: { address: 'redis:6379' } } },
  'several proxies without a common store': { spec: { ...http, replicas: 2 } },
  'several proxies whose logins are in memory': {
    spec: {
      ...{ ...logsIn, replicas: 2 },
      oidcConfig: {
        ...{ type: 'inline', resourceUrl: 'https://mcp.example.com/mcp' },
        inline: { issuer: 'https://mcp.example.com', audience: 'https://mcp.example.com/mcp' },
      },
    },
    lookup: auth(login('a', 'b')),
  },
  'a variable that is set twice': {
    spec: { image, env: [{ name: 'TOKEN', value: 'x' }], secrets: [{ name: 's', key: 'k', targetEnvName: 'TOKEN' }] },
  },
  'a client secret in clear': { spec: inline({ clientId: 'c', clientSecret: 'not-a-real-secret' }) },
  'a policy that names a tool as clients do': {
    spec: {
      image,
      toolConfigRef: { name: 't' },
      authzConfig: { type: 'inline', inline: { policies: ['permit(principal, action, resource == Tool::"find");'] } },
    },
    lookup: snapshot({ toolConfigs: { t: { spec: { toolsOverride: { search: { name: 'find' } } } } } }),
  },
  'a provider that is ignored': {
    spec: {
      image,
      authzConfig: { type: 'inline', inline: { policies: ['permit(principal, action, resource);'], primaryUpstreamProvider: 'p' } },
    },
  },
  'a CA bundle that may be missing': {
    spec: inline({ caBundleRef: { configMapRef: { name: 'ca', key: 'ca.crt', optional: true } } }),
    lookup: nothing,
  },
  'hosts beside ports': profile({ outbound: { allow_host: ['api.example.com'], allow_port: [443] } }),
  'hosts alone': profile({ outbound: { allow_host: ['api.example.com'] } }),
  'inbound hosts': profile({ inbound: { allow_host: ['api.example.com'] } }),
  'folders in a profile': profile({}, { read: ['/data'] }),
  'limits in memory': { spec: { image, rateLimiting: { shared: { maxTokens: 1, refillPeriod: '1m' } } } },
  'an authorization server': {
    spec: {
      ...logsIn,
      oidcConfig: {
        resourceUrl: 'https://mcp.example.com/mcp',
        ...inline({ issuer: 'https://mcp.example.com', audience: 'https://mcp.example.com/mcp' }).oidcConfig,
      },
    },
    lookup: auth(login('a')),
  },
}
