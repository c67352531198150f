import { gateways, httpRoutes, mcpKinds } from '@thv/catalog/cluster/cluster-kinds'
import { type KubeClient, type KubeObject, namespaces, type ResourceType, services } from '@thv/kube'
import { inParallel } from '../operator/server-load.ts'

/* Exported resources: one half by a URL of their own, the other by a route. As many routes again opt in to nothing. */

export interface Size {
  readonly namespaces: number
  readonly perNamespace: number
}

export const serverType = mcpKinds.MCPServer[0] as ResourceType
const [routeType, gatewayType] = [httpRoutes[0] as ResourceType, gateways[0] as ResourceType]
const OPT_IN = { 'toolhive.stacklok.dev/registry-export': 'true' }
const DESCRIPTION = {
  'toolhive.stacklok.dev/registry-description': 'Reads and writes the things that a team works with. '.repeat(4).trim(),
}
/** Those with a URL of their own. */
export const isDirect = (index: number) => index % 2 === 0

export const namespaceOf = (index: number) => `team-${index}`
export const serverName = (index: number) => `server-${index}`
export const entryName = (namespace: number, index: number) => `dev.stacklok.toolhive/${namespaceOf(namespace)}.${serverName(index)}`

export async function createExports(client: KubeClient, size: Size): Promise<void> {
  for (let team = 0; team < size.namespaces; team++) {
    const namespace = namespaceOf(team)
    await client.create(namespaces, { metadata: { name: namespace } } as KubeObject)
    await withStatus(client, gatewayType, gatewayIn(namespace), { addresses: [{ type: 'Hostname', value: `${namespace}.example.com` }] })
  }
  await inParallel(all(size), async ([team, index]) => {
    const namespace = namespaceOf(team)
    const name = serverName(index)
    const annotations = isDirect(index) ? directAnnotations(name, 'first') : DESCRIPTION
    const spec = { image: `ghcr.io/org/${name}:1`, transport: 'streamable-http' }
    const { metadata } = await client.create(serverType, { metadata: { namespace, name, annotations }, spec } as KubeObject)
    if (isDirect(index)) return
    await client.create(services, proxyService(namespace, name, metadata.uid ?? '') as never)
    const route = routeIn(namespace, name, OPT_IN)
    await withStatus(client, routeType, route, acceptedStatus)
  })
}

/** Routes that opt in to nothing, one for each resource that has none. */
export async function createPlainRoutes(client: KubeClient, size: Size): Promise<void> {
  await inParallel(
    all(size).filter(([, index]) => isDirect(index)),
    async ([team, index]) => void (await client.create(routeType, routeIn(namespaceOf(team), serverName(index), {}))),
  )
}

/** An annotation that gives the resource another URL. */
export async function changeUrl(client: KubeClient, team: number, index: number, word: string): Promise<void> {
  const name = serverName(index)
  await client.patch(
    serverType,
    { namespace: namespaceOf(team), name },
    { kind: 'merge', body: { metadata: { annotations: directAnnotations(name, word) } } },
  )
}

/** Changes that no URL depends on. */
export async function changeUnrelated(client: KubeClient, what: 'server' | 'plain route', team: number, index: number): Promise<void> {
  const annotations = { 'bench.example.com/touched': String(performance.now()) }
  await client.patch(
    what === 'server' ? serverType : routeType,
    { namespace: namespaceOf(team), name: serverName(index) },
    { kind: 'merge', body: { metadata: { annotations } } },
  )
}

function all({ namespaces: teams, perNamespace }: Size): (readonly [number, number])[] {
  return Array.from({ length: teams * perNamespace }, (_, at) => [Math.floor(at / perNamespace), at % perNamespace] as const)
}

function directAnnotations(name: string, word: string): Record<string, string> {
  return { ...OPT_IN, ...DESCRIPTION, 'toolhive.stacklok.dev/registry-url': `https://${name}.example.com/${word}` }
}

async function withStatus(client: KubeClient, type: ResourceType, object: KubeObject, status: object): Promise<void> {
  await client.create(type, object)
  const { namespace = '', name } = object.metadata
  await client.patch(type, { namespace, name }, { kind: 'merge', body: { status } }, { subresource: 'status' })
}

function gatewayIn(namespace: string): KubeObject {
  const listeners = [{ name: 'https', port: 443, protocol: 'HTTPS', tls: { certificateRefs: [{ name: 'tls' }] } }]
  return { metadata: { namespace, name: 'edge' }, spec: { gatewayClassName: 'bench', listeners } } as KubeObject
}

function proxyService(namespace: string, name: string, uid: string): KubeObject {
  const ownerReferences = [{ apiVersion: 'toolhive.stacklok.dev/v1beta1', kind: 'MCPServer', name, uid, controller: true }]
  const selector = { app: 'mcpserver', 'app.kubernetes.io/name': 'mcpserver', 'app.kubernetes.io/instance': name }
  return {
    metadata: { namespace, name: `mcp-${name}-proxy`, ownerReferences },
    spec: { selector, ports: [{ name: 'http', port: 8080 }] },
  } as KubeObject
}

function routeIn(namespace: string, name: string, annotations: Record<string, string>): KubeObject {
  const matches = [{ path: { type: 'PathPrefix', value: `/${name}` } }]
  const rewrite = { type: 'URLRewrite', urlRewrite: { path: { type: 'ReplacePrefixMatch', replacePrefixMatch: '/' } } }
  return {
    metadata: { namespace, name, annotations },
    spec: {
      parentRefs: [{ name: 'edge' }],
      rules: [{ matches, filters: [rewrite], backendRefs: [{ name: `mcp-${name}-proxy`, port: 8080 }] }],
    },
  } as KubeObject
}

const acceptedStatus = {
  parents: [
    {
      parentRef: { group: 'gateway.networking.k8s.io', kind: 'Gateway', name: 'edge' },
      controllerName: 'example.com/bench',
      conditions: ['Accepted', 'ResolvedRefs'].map((type) => ({
        ...{ type, status: 'True', reason: type, message: '' },
        ...{ lastTransitionTime: '2026-01-01T00:00:00Z', observedGeneration: 1 },
      })),
    },
  ],
}
