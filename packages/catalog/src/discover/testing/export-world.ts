import type { KubeObject } from '@thv/kube/objects/types'
import { discover } from '../discover.ts'
import type { DiscoveryResult } from '../discovery.ts'
import { type KnownServers, noKnownServers } from '../entry/known-servers.ts'
import type { ClusterObjects } from '../objects/cluster-objects.ts'
import type { ExportOptions } from '../objects/export-options.ts'
import { gatewayOf } from '../objects/gateway.ts'
import { httpRouteOf } from '../objects/http-route.ts'
import { mcpResourceOf, type ResourceKind } from '../objects/mcp-resource.ts'
import { referenceGrantOf } from '../objects/reference-grant.ts'
import { backendServiceOf } from '../objects/service.ts'

/** A manifest that tests may change in every part. */
// biome-ignore lint/suspicious/noExplicitAny: rows of tests set members of any shape
export type Manifest = any

/** Manifests of a cluster, to be changed by tests before they are read. */
export interface ExportWorld {
  servers: Manifest[]
  proxies: Manifest[]
  virtuals: Manifest[]
  services: Manifest[]
  routes: Manifest[]
  gateways: Manifest[]
  grants: Manifest[]
  unreadable: string[]
  options: ExportOptions
  known: KnownServers
}

export const annotation = (name: string) => `toolhive.stacklok.dev/${name}`

export const uidOf = (kind: string, name: string) =>
  `00000000-0000-4000-8000-${Buffer.from(`${kind}${name}`).toString('hex').slice(-12).padStart(12, '0')}`

export function mcp(kind: ResourceKind, name: string, spec: Manifest = {}, namespace = 'mcp-servers'): Manifest {
  return {
    apiVersion: 'toolhive.stacklok.dev/v1alpha1',
    kind,
    metadata: { name, namespace, uid: uidOf(kind, name), annotations: {} },
    spec,
  }
}

export function proxyService(kind: ResourceKind, name: string, namespace = 'mcp-servers'): Manifest {
  const app = kind.toLowerCase()
  const serviceName = { MCPServer: `mcp-${name}-proxy`, MCPRemoteProxy: `mcp-${name}-remote-proxy`, VirtualMCPServer: `vmcp-${name}` }[kind]
  const ownerReferences = [
    { apiVersion: 'toolhive.stacklok.dev/v1beta1', kind, name, uid: uidOf(kind, name), controller: true, blockOwnerDeletion: true },
  ]
  const labels = { app, 'app.kubernetes.io/name': app, 'app.kubernetes.io/instance': name, toolhive: 'true', 'toolhive-name': name }
  return {
    apiVersion: 'v1',
    kind: 'Service',
    metadata: { name: serviceName, namespace, ownerReferences },
    spec: { clusterIP: '10.0.0.7', selector: labels, ports: [{ name: 'http', port: 8080 }] },
  }
}

export function gateway(name: string, namespace = 'gateway-system'): Manifest {
  return {
    apiVersion: 'gateway.networking.k8s.io/v1',
    kind: 'Gateway',
    metadata: { name, namespace },
    spec: { gatewayClassName: 'any', addresses: [{ type: 'Hostname', value: 'asked.example' }], listeners: [listener('https', 443)] },
    status: { addresses: [{ type: 'Hostname', value: 'lb.company.com' }] },
  }
}

export function listener(name: string, port: number, more: Manifest = {}): Manifest {
  return { name, port, protocol: name.startsWith('https') ? 'HTTPS' : 'HTTP', ...more }
}

export function accepted(parentRef: Manifest, conditions: Record<string, string> = { Accepted: 'True', ResolvedRefs: 'True' }): Manifest {
  const list = Object.entries(conditions).map(([type, status]) => ({ type, status, reason: `${type}${status}` }))
  return { parentRef, controllerName: 'example.com/gateway', conditions: list }
}

export function httpRoute(name: string, serviceName: string, path = '/github'): Manifest {
  const parentRef = { group: 'gateway.networking.k8s.io', kind: 'Gateway', name: 'external-gateway', namespace: 'gateway-system' }
  return {
    apiVersion: 'gateway.networking.k8s.io/v1',
    kind: 'HTTPRoute',
    metadata: { name, namespace: 'mcp-servers', generation: 1, annotations: { [annotation('registry-export')]: 'true' } },
    spec: {
      parentRefs: [parentRef],
      hostnames: ['mcp.company.com'],
      rules: [
        {
          matches: [{ path: { type: 'PathPrefix', value: path } }],
          filters: [rewriteTo('/')],
          backendRefs: [{ group: '', kind: 'Service', name: serviceName, port: 8080, weight: 1 }],
        },
      ],
    },
    status: { parents: [accepted(parentRef)] },
  }
}

export function rewriteTo(replacePrefixMatch: string): Manifest {
  return { type: 'URLRewrite', urlRewrite: { path: { type: 'ReplacePrefixMatch', replacePrefixMatch } } }
}

export function grant(name: string, to: Manifest, namespace = 'gateway-system'): Manifest {
  return {
    apiVersion: 'gateway.networking.k8s.io/v1beta1',
    kind: 'ReferenceGrant',
    metadata: { name, namespace },
    spec: { from: [{ group: 'gateway.networking.k8s.io', kind: 'HTTPRoute', namespace: 'mcp-servers' }], to: [to] },
  }
}

/** MCPServer github-mcp behind a route of external-gateway, in the mode of the operator. */
export function exportWorld(): ExportWorld {
  const server = mcp('MCPServer', 'github-mcp', { image: 'ghcr.io/x/github:1', transport: 'sse', port: 8080 })
  server.metadata.annotations[annotation('registry-description')] = 'GitHub MCP'
  return {
    servers: [server],
    proxies: [],
    virtuals: [],
    services: [proxyService('MCPServer', 'github-mcp')],
    routes: [httpRoute('r1', 'mcp-github-mcp-proxy')],
    gateways: [gateway('external-gateway')],
    grants: [grant('routes', { group: 'gateway.networking.k8s.io', kind: 'Gateway' })],
    unreadable: [],
    options: { mode: 'operator', crossNamespaceGateway: 'referenceGrant' },
    known: noKnownServers,
  }
}

export function clusterObjects(world: ExportWorld): ClusterObjects {
  const read = (kind: ResourceKind, list: readonly KubeObject[]) => list.flatMap((object) => mcpResourceOf(kind, object) ?? [])
  return {
    resources: [...read('MCPServer', world.servers), ...read('MCPRemoteProxy', world.proxies), ...read('VirtualMCPServer', world.virtuals)],
    routes: world.routes.flatMap((route: KubeObject) => httpRouteOf(route) ?? []),
    services: world.services.map(backendServiceOf),
    gateways: world.gateways.map(gatewayOf),
    grants: world.grants.map(referenceGrantOf),
    unreadable: world.unreadable,
  }
}

export function discoverWorld(world: ExportWorld): DiscoveryResult {
  return discover(clusterObjects(world), world.options, world.known)
}

/** `name@version type url …` for each entry, and `Reason` for each warning. */
export function summary({ entries, warnings }: DiscoveryResult): { entries: string[]; reasons: string[] } {
  return {
    entries: entries.map(({ name, version, text }) => {
      const { remotes = [] } = JSON.parse(text) as { remotes?: { type: string; url: string }[] }
      return [`${name}@${version}`, ...remotes.map(({ type, url }) => `${type} ${url}`)].join(' ')
    }),
    reasons: warnings.map(({ reason }) => reason),
  }
}
