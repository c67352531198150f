import type { MCPExternalAuthConfig } from '@thv/resources/kinds/mcp-external-auth-config/schema'
import type { MCPRemoteProxy } from '@thv/resources/kinds/mcp-remote-proxy/schema'
import type { OperatorSettings } from '../../../operator-settings.ts'
import { snapshot } from '../../../proxy/resolve/testing/snapshot.ts'
import type { Lookup } from '../../../references/lookup.ts'

/* MCPRemoteProxies whose plans the golden files show. What they have in common with MCPServers is shown there. */

type Spec = MCPRemoteProxy['spec']

export interface RemoteProxyCase {
  readonly spec: Spec
  /** By default everything that the fixtures name is there. */
  readonly lookup?: Lookup
  readonly settings?: Partial<OperatorSettings>
}

const remoteUrl = 'https://weather.example.com/mcp'

/** Everything that this version can do. */
const full: Spec = {
  remoteUrl,
  proxyPort: 9000,
  allowPrivateEndpoint: true,
  caBundleRef: { configMapRef: { name: 'company-ca', key: 'root.pem' } },
  headerForward: {
    addPlaintextHeaders: { 'X-Tenant': 'tools' },
    addHeadersFromSecret: [{ headerName: 'X-Api-Key', valueSecretRef: { name: 'weather', key: 'api-key' } }],
  },
  resources: { limits: { cpu: 1, memory: '256Mi' }, requests: { cpu: '100m', memory: '64Mi' } },
  podTemplateSpec: { spec: { priorityClassName: 'tools', containers: [{ name: 'toolhive', env: [{ name: 'NO_PROXY', value: '.svc' }] }] } },
  resourceOverrides: {
    proxyDeployment: {
      annotations: { 'example.com/owner': 'platform' },
      labels: { team: 'platform' },
      podTemplateMetadataOverrides: { annotations: { 'example.com/inject': 'true' }, labels: { tier: 'tools' } },
      env: [{ name: 'HTTPS_PROXY', value: 'http://proxy.example.com:3128' }],
      imagePullSecrets: [{ name: 'registry-credentials' }],
    },
    proxyService: { annotations: { 'example.com/dns': 'weather.mcp.example.com' }, labels: { exposed: 'yes' } },
  },
  serviceAccount: 'weather-proxy',
  groupRef: { name: 'engineering' },
  toolConfigRef: { name: 'read-only' },
  telemetry: { prometheus: { enabled: true } },
  replicas: 2,
  sessionStorage: { provider: 'memory' },
  sessionAffinity: 'None',
  serviceType: 'NodePort',
  trustProxyHeaders: true,
  trustedProxies: ['10.0.0.0/8'],
  endpointPrefix: '/weather',
  allowedHosts: ['weather.mcp.example.com'],
}

const inline = (settings: object): NonNullable<Spec['oidcConfig']> => ({
  type: 'inline',
  inline: { issuer: 'https://login.example.com', ...settings },
})

/** Of these the whole plan is shown. */
export const WHOLE: Readonly<Record<string, Spec>> = {
  'streamable-http-minimal': { remoteUrl },
  'streamable-http-full': full,
  'sse-minimal': { remoteUrl, transport: 'sse' },
  'sse-full': { ...full, transport: 'sse' },
  guarded: {
    remoteUrl,
    oidcConfig: inline({ audience: 'weather', caBundleRef: { configMapRef: { name: 'company-ca', key: 'root.pem' } } }),
    externalAuthConfigRef: { name: 'static-bearer' },
    authzConfig: { type: 'inline', inline: { policies: ['permit(principal, action, resource);'] } },
    audit: { enabled: true },
    telemetry: { openTelemetry: { enabled: true, endpoint: 'otel.example.com:4318', metrics: { enabled: true } } },
    sessionStorage: { provider: 'redis', address: 'redis:6379', passwordRef: { name: 'redis', key: 'password' } },
  },
}

const nothing = snapshot()
const strict = { remotes: { denyPrivate: true, allowLoopback: false, blockedAddresses: [] } }

function auth(spec: unknown): Lookup {
  return { ...nothing, externalAuthConfig: (name) => ({ metadata: { name }, spec }) as MCPExternalAuthConfig }
}
const uses: Spec = { remoteUrl, externalAuthConfigRef: { name: 'auth' } }
const signs = { type: 'awsSts', awsSts: { region: 'eu-central-1', fallbackRoleArn: 'arn:aws:iam::123456789012:role/mcp' } }
const header = { headerName: 'X-Key', valueSecretRef: { name: 's', key: 'k' } }

/** One for each way to be refused that MCPServers do not have. */
export const BLOCKED: Readonly<Record<string, RemoteProxyCase>> = {
  'no URL': { spec: {} },
  'two spellings that differ': { spec: { remoteUrl, remoteURL: 'https://other.example.com' } },
  'a URL that is none': { spec: { remoteUrl: 'weather' } },
  'the metadata service of a cloud': { spec: { remoteUrl: 'http://169.254.169.254/latest' } },
  'the API server': { spec: { remoteUrl: 'https://kubernetes.default.svc/api' } },
  'an address of the machine itself': { spec: { remoteUrl: 'http://localhost:8080' } },
  'a private address where none is allowed': { spec: { remoteUrl: 'https://10.0.0.7/mcp' }, settings: strict },
  'no CA bundle': { spec: { remoteUrl, caBundleRef: { name: 'ca' } }, lookup: nothing },
  'a CA bundle that is none': {
    spec: { remoteUrl, caBundleRef: { name: 'ca' } },
    lookup: snapshot({ configMaps: { ca: { 'ca.crt': 'x' } } }),
  },
  'no Secret of a header': { spec: { remoteUrl, headerForward: { addHeadersFromSecret: [header] } }, lookup: nothing },
  'two sources of Authorization': {
    spec: { ...uses, headerForward: { addPlaintextHeaders: { authorization: 'Basic x' } } },
    lookup: auth({ type: 'unauthenticated' }),
  },
  'AWS signatures without users': { spec: uses, lookup: auth(signs) },
  'limits per user without users': { spec: { remoteUrl, rateLimiting: { perUser: { maxTokens: 1, refillPeriod: '1m' } } } },
  'limits of several proxies without a common store': {
    spec: { remoteUrl, replicas: 2, rateLimiting: { shared: { maxTokens: 1, refillPeriod: '1m' } } },
  },
  'OIDC settings that cannot be used': { spec: { remoteUrl, oidcConfig: inline({ issuer: 'http://login.example.com' }) } },
}

/** One for each condition that is set although nothing blocks. */
export const NOTABLE: Readonly<Record<string, RemoteProxyCase>> = {
  'no authentication': { spec: { remoteUrl } },
  'clients have to say who they are': { spec: { remoteUrl, oidcConfig: inline({}) } },
  'a private address': { spec: { remoteUrl: 'http://10.0.0.7/mcp' } },
  'a private address that is meant': { spec: { remoteUrl: 'http://10.0.0.7/mcp', allowPrivateEndpoint: true }, settings: strict },
  'AWS signatures': { spec: { ...uses, oidcConfig: inline({}) }, lookup: auth(signs) },
  'no credentials': { spec: uses, lookup: auth({ type: 'unauthenticated' }) },
  'several proxies without a common store': { spec: { remoteUrl, replicas: 2 } },
  'limits in memory': { spec: { remoteUrl, rateLimiting: { shared: { maxTokens: 1, refillPeriod: '1m' } } } },
}
