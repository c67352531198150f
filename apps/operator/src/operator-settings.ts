import { apiServerAddresses } from '@thv/http/outbound/api-server-addresses'
import { ThvError } from '@thv/kernel/errors'
import type { Platform } from '@thv/kube/objects/pod-security'
import { POD_SECURITY_LEVELS, type PodSecurityLevel } from './deployment/template/pod-security.ts'

/** The checked values of the operator's flags and variables. */
export interface OperatorSettings {
  /** Undefined: all namespaces. */
  readonly watchNamespaces: readonly string[] | undefined
  /** Where the Lease is. */
  readonly podNamespace: string
  /** Told the others by the Lease and by Events. */
  readonly podName: string
  /** ServiceAccount of the operator itself, in `podNamespace`. */
  readonly operatorAccount: string
  readonly leaderElection: boolean
  readonly leaseName: string
  readonly leaseDurationMs: number
  readonly metricsAddress: Address | undefined
  readonly healthAddress: Address | undefined
  /** Undefined: the admission webhook is not served. */
  readonly webhook: WebhookSettings | undefined

  readonly runnerImage: string
  /** Of the API pods of an MCPRegistry. */
  readonly registryImage: string
  /** Of the pods of a VirtualMCPServer. */
  readonly vmcpImage: string
  /** Address that proxies listen on. */
  readonly proxyHost: string
  readonly defaultImagePullSecrets: readonly string[]
  readonly defaultRedis: DefaultRedis | undefined
  readonly platform: Platform
  /** The most that pods of workloads may ask for. */
  readonly podSecurity: PodSecurityLevel
  readonly remotes: RemotePolicySettings
  readonly clusterDomain: string
  /** `dns`: URLs for clients in the cluster. `address`: of the Service itself, where clients outside reach it but know no cluster names. */
  readonly serviceUrls: 'dns' | 'address'
  /** The images that run npx:// and uvx:// packages; `native` where nodes run them by themselves. */
  readonly packageImages: PackageImages | 'native'
  readonly registryExport: RegistryExportSettings
}

export interface WebhookSettings {
  readonly address: Address
  /** Name of the ValidatingWebhookConfiguration. */
  readonly configuration: string
  /** Name of the Secret with the certificates, in `podNamespace`. */
  readonly secret: string
  /** Names and addresses that the API server may call it by. */
  readonly hosts: readonly string[]
}

export interface RegistryExportSettings {
  /** Namespaces that MCPRegistries of other namespaces may export. */
  readonly namespaces: readonly string[] | 'all'
  /** ClusterRole with the rights to read all of them; bound for registries that export everything. */
  readonly clusterRole: string | undefined
}

export interface PackageImages {
  readonly npx: string
  readonly uvx: string
}

export interface Address {
  readonly host: string
  readonly port: number
}

export interface DefaultRedis {
  readonly address: string
  readonly passwordRef?: { readonly name: string; readonly key: string }
}

export interface RemotePolicySettings {
  readonly denyPrivate: boolean
  readonly allowLoopback: boolean
  /** Addresses of the API server, which no remote server may have. */
  readonly blockedAddresses: readonly string[]
}

export interface OperatorFlags {
  readonly metricsBindAddress: string
  readonly healthProbeBindAddress: string
  readonly webhookBindAddress: string
  readonly leaderElect: boolean
  readonly leaseDuration: number
  readonly denyPrivateRemotes: boolean
  readonly allowLoopbackRemotes: boolean
}

export const LEASE_NAME = 'toolhive-operator-leader-election'
/** The one image with all programs, as `scripts/image.ts` writes it. */
export const DEFAULT_RUNNER_IMAGE = 'toolhive-ts:0.1.0'

/** Public images that hold npx, and uvx. */
export const DEFAULT_NPX_IMAGE = 'docker.io/library/node:24-alpine'
export const DEFAULT_UVX_IMAGE = 'ghcr.io/astral-sh/uv:python3.13-alpine'

type Env = Readonly<Record<string, string | undefined>>

export interface DetectedCluster {
  readonly openshift: boolean
  /** URL of the API server. */
  readonly server?: string
}

/** Pure. Throws `usage` with the variable or flag to correct. */
export function operatorSettings(flags: OperatorFlags, env: Env, detected: DetectedCluster): OperatorSettings {
  const openshift = env['OPERATOR_OPENSHIFT'] ? env['OPERATOR_OPENSHIFT'] === 'true' : detected.openshift
  return {
    watchNamespaces: namespaces(env['WATCH_NAMESPACE']),
    podNamespace: env['POD_NAMESPACE'] || 'default',
    podName: env['POD_NAME'] || env['HOSTNAME'] || 'thv-operator',
    operatorAccount: env['POD_SERVICE_ACCOUNT'] || 'toolhive-operator',
    leaderElection: flags.leaderElect,
    leaseName: LEASE_NAME,
    leaseDurationMs: flags.leaseDuration,
    metricsAddress: address('--metrics-bind-address', flags.metricsBindAddress),
    healthAddress: address('--health-probe-bind-address', flags.healthProbeBindAddress),
    webhook: webhook(flags, env),
    runnerImage: env['TOOLHIVE_RUNNER_IMAGE'] || DEFAULT_RUNNER_IMAGE,
    registryImage: env['TOOLHIVE_REGISTRY_API_IMAGE'] || env['TOOLHIVE_RUNNER_IMAGE'] || DEFAULT_RUNNER_IMAGE,
    vmcpImage: env['TOOLHIVE_VMCP_IMAGE'] || env['VMCP_IMAGE'] || env['TOOLHIVE_RUNNER_IMAGE'] || DEFAULT_RUNNER_IMAGE,
    proxyHost: env['TOOLHIVE_PROXY_HOST'] || '0.0.0.0',
    defaultImagePullSecrets: list(env['TOOLHIVE_DEFAULT_IMAGE_PULL_SECRETS']),
    defaultRedis: defaultRedis(env),
    platform: openshift ? 'openshift' : 'kubernetes',
    podSecurity: podSecurity(env['TOOLHIVE_POD_SECURITY']),
    remotes: {
      denyPrivate: flags.denyPrivateRemotes,
      allowLoopback: flags.allowLoopbackRemotes,
      blockedAddresses: apiServerAddresses({ env, server: detected.server }),
    },
    clusterDomain: env['CLUSTER_DOMAIN'] || 'cluster.local',
    serviceUrls: serviceUrls(env['TOOLHIVE_SERVICE_URLS']),
    packageImages: packageImages(env),
    registryExport: registryExport(env),
  }
}

function webhook(flags: OperatorFlags, env: Env): WebhookSettings | undefined {
  const at = address('--webhook-bind-address', flags.webhookBindAddress)
  if (at === undefined) return undefined
  const hosts = list(env['TOOLHIVE_WEBHOOK_HOSTS'])
  if (hosts.length === 0) throw new ThvError('usage', '--webhook-bind-address needs TOOLHIVE_WEBHOOK_HOSTS: the names it is called by')
  return {
    address: at,
    configuration: env['TOOLHIVE_WEBHOOK_CONFIGURATION'] || 'toolhive-operator',
    secret: env['TOOLHIVE_WEBHOOK_SECRET'] || 'toolhive-operator-webhook',
    hosts,
  }
}

function packageImages(env: Env): OperatorSettings['packageImages'] {
  const how = env['TOOLHIVE_PACKAGE_IMAGES']
  if (how === 'native') return how
  if (how) throw new ThvError('usage', `TOOLHIVE_PACKAGE_IMAGES: "${how}" is not native; leave it out to run packages by images`)
  return { npx: env['TOOLHIVE_NPX_IMAGE'] || DEFAULT_NPX_IMAGE, uvx: env['TOOLHIVE_UVX_IMAGE'] || DEFAULT_UVX_IMAGE }
}

function registryExport(env: Env): RegistryExportSettings {
  const names = [...new Set(list(env['TOOLHIVE_REGISTRY_EXPORT_NAMESPACES']))]
  const clusterRole = env['TOOLHIVE_REGISTRY_EXPORT_CLUSTER_ROLE'] || undefined
  if (!names.includes('*')) return { namespaces: checkedNamespaces('TOOLHIVE_REGISTRY_EXPORT_NAMESPACES', names), clusterRole }
  if (clusterRole === undefined)
    throw new ThvError('usage', 'TOOLHIVE_REGISTRY_EXPORT_NAMESPACES: "*" needs TOOLHIVE_REGISTRY_EXPORT_CLUSTER_ROLE')
  return { namespaces: 'all', clusterRole }
}

function podSecurity(text: string | undefined): PodSecurityLevel {
  const level = POD_SECURITY_LEVELS.find((known) => known === (text || 'privileged'))
  if (level === undefined) throw new ThvError('usage', `TOOLHIVE_POD_SECURITY: "${text}" is none of ${POD_SECURITY_LEVELS.join(', ')}`)
  return level
}

function serviceUrls(text: string | undefined): OperatorSettings['serviceUrls'] {
  if (!text || text === 'dns') return 'dns'
  if (text === 'address') return text
  throw new ThvError('usage', `TOOLHIVE_SERVICE_URLS: "${text}" is neither dns nor address`)
}

function defaultRedis(env: Env): DefaultRedis | undefined {
  const address = env['TOOLHIVE_DEFAULT_REDIS_ADDR']
  if (!address) return undefined
  const name = env['TOOLHIVE_DEFAULT_REDIS_SECRET_NAME']
  if (!name) return { address }
  return { address, passwordRef: { name, key: env['TOOLHIVE_DEFAULT_REDIS_SECRET_KEY'] || 'redis-password' } }
}

function namespaces(text: string | undefined): string[] | undefined {
  const names = checkedNamespaces('WATCH_NAMESPACE', [...new Set(list(text))])
  return names.length === 0 ? undefined : names
}

function checkedNamespaces(variable: string, names: string[]): string[] {
  for (const name of names) {
    if (!/^[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?$/.test(name))
      throw new ThvError('usage', `${variable}: "${name}" is not the name of a namespace`)
  }
  return names
}

function list(text: string | undefined): string[] {
  return (text ?? '')
    .split(',')
    .map((part) => part.trim())
    .filter((part) => part !== '')
}

/** `:8080`, `127.0.0.1:8080`, `[::1]:8080`, or `0` for none, as the flags of ToolHive (Go). */
function address(flag: string, text: string): Address | undefined {
  if (text === '0' || text === '') return undefined
  const match = /^(?:\[([0-9a-fA-F:]+)\]|([^:]*)):(\d{1,5})$/.exec(text)
  const port = Number(match?.[3])
  if (!match || port > 65_535) throw new ThvError('usage', `${flag}: "${text}" is not HOST:PORT, :PORT or 0`)
  return { host: match[1] || match[2] || '0.0.0.0', port }
}
