import { execFile } from 'node:child_process'
import { promisify } from 'node:util'
import { gateways, httpRoutes, referenceGrants } from '@thv/catalog/cluster/cluster-kinds'
import type { KubeObject, ResourceType } from '@thv/kube'
import { ensureBinaries } from '@thv/testkit/cluster/programs/binaries'
import { traefikController } from '@thv/testkit/traefik/traefik'
import type { World } from './world.ts'

/* Objects of the Gateway API, as the design documents print them, and kubectl as people use it. */

export const ROUTE = httpRoutes[0] as ResourceType
export const GATEWAY = gateways[0] as ResourceType
export const GRANT = referenceGrants[0] as ResourceType
const CLASS: ResourceType = {
  group: 'gateway.networking.k8s.io',
  version: 'v1',
  kind: 'GatewayClass',
  plural: 'gatewayclasses',
  namespaced: false,
}

/** For as long as the story lasts: it belongs to no namespace. */
export async function gatewayClass({ client, namespace: name }: World): Promise<AsyncDisposable> {
  await client.create(CLASS, { metadata: { name }, spec: { controllerName: traefikController } } as KubeObject)
  return { [Symbol.asyncDispose]: async () => void (await client.delete(CLASS, { name })) }
}

export async function createGateway(world: World, at: { namespace: string; name: string }, port: number): Promise<void> {
  const listeners = [{ name: 'web', port, protocol: 'HTTP', allowedRoutes: { namespaces: { from: 'All' } } }]
  await world.client.create(GATEWAY, { metadata: at, spec: { gatewayClassName: world.namespace, listeners } } as KubeObject)
}

export interface RouteRequest {
  readonly name: string
  readonly gateway: { readonly namespace: string; readonly name: string }
  readonly path: string
  readonly service: string
  readonly port: number
}

/** With the rewrite of design document 001. */
export async function createRoute(world: World, { name, gateway, path, service, port }: RouteRequest): Promise<void> {
  const rule = {
    matches: [{ path: { type: 'PathPrefix', value: path } }],
    filters: [{ type: 'URLRewrite', urlRewrite: { path: { type: 'ReplacePrefixMatch', replacePrefixMatch: '/' } } }],
    backendRefs: [{ name: service, port }],
  }
  await world.client.create(ROUTE, { metadata: world.at(name), spec: { parentRefs: [gateway], rules: [rule] } } as KubeObject)
}

export async function grantGateways(world: World, namespace: string, name: string): Promise<void> {
  const group = 'gateway.networking.k8s.io'
  const spec = { from: [{ group, kind: 'HTTPRoute', namespace: world.namespace }], to: [{ group, kind: 'Gateway' }] }
  await world.client.create(GRANT, { metadata: { namespace, name }, spec } as KubeObject)
}

const KUBECTL_LIMIT_MS = 60_000

/** In the namespace of the story. */
export async function kubectl({ kubeconfigPath, namespace }: World, ...args: string[]): Promise<string> {
  const binaries = await ensureBinaries({ log: (line) => console.error(line) })
  const all = ['--kubeconfig', kubeconfigPath, '--namespace', namespace, ...args]
  const { stdout } = await promisify(execFile)(binaries.path('kubectl'), all, { timeout: KUBECTL_LIMIT_MS })
  return stdout
}
