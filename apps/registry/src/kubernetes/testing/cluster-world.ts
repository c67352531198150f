import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { gateways, httpRoutes, mcpKinds, referenceGrants } from '@thv/catalog/cluster/cluster-kinds'
import type { KubeClient, KubeObject, ResourceType } from '@thv/kube'
import { clusterRoleBindings, clusterRoles, serviceAccounts, services } from '@thv/kube'
import type { ClusterAccess } from '@thv/testkit/cluster/cluster-access'
import { type EngineParts, type StartedRegistry, startRegistry } from '../../testing/run-registry.ts'
import { until } from '../../testing/until.ts'

/** Content of a deleted namespace goes when the controllers of the cluster come to it: on a busy machine half a minute is too short. */
const FOLLOWED_WITHIN_MS = 90_000

/** A manifest, whatever its kind. */
export type Manifest = KubeObject & { readonly spec?: object; readonly status?: object }

const TYPES: readonly ResourceType[] = [
  ...Object.values(mcpKinds).flatMap(([type]) => type ?? []),
  ...[httpRoutes, gateways, referenceGrants].flatMap(([type]) => type ?? []),
  services,
  clusterRoles,
  clusterRoleBindings,
]

export function typeOf({ kind }: KubeObject): ResourceType {
  const type = TYPES.find((each) => each.kind === kind)
  if (type === undefined) throw new Error(`no test uses ${kind}`)
  return type
}

/** Applies it, and its status too where it has one. */
export async function put(client: KubeClient, manifest: Manifest): Promise<KubeObject> {
  const { status, apiVersion: _, ...object } = manifest
  const type = typeOf(manifest)
  const made = await client.apply(type, object as KubeObject, { fieldManager: 'test', force: true })
  if (status === undefined) return made
  const { name, namespace } = manifest.metadata
  return await client.patch(type, { name, ...(namespace && { namespace }) }, { kind: 'merge', body: { status } }, { subresource: 'status' })
}

/** The Service that the operator makes for a resource. */
export function proxyServiceOf(owner: KubeObject, kind: string, name: string): Manifest {
  const app = kind.toLowerCase()
  const { namespace, uid = '', name: ownerName } = owner.metadata
  return {
    apiVersion: 'v1',
    kind: 'Service',
    metadata: {
      name,
      ...(namespace && { namespace }),
      ownerReferences: [{ apiVersion: 'toolhive.stacklok.dev/v1beta1', kind, name: ownerName, uid, controller: true }],
    },
    spec: {
      selector: { app, 'app.kubernetes.io/name': app, 'app.kubernetes.io/instance': ownerName },
      ports: [{ name: 'http', port: 8080 }],
    },
  }
}

export function acceptedBy(route: Manifest): object {
  const { parentRefs } = route.spec as { parentRefs: object[] }
  const condition = (type: string) => ({
    type,
    status: 'True',
    reason: type,
    message: '',
    lastTransitionTime: '2026-01-01T00:00:00Z',
    observedGeneration: 1,
  })
  return {
    parents: parentRefs.map((parentRef) => ({
      parentRef: { group: 'gateway.networking.k8s.io', kind: 'Gateway', ...parentRef },
      controllerName: 'example.com/gateway',
      conditions: [condition('Accepted'), condition('ResolvedRefs')],
    })),
  }
}

/** A kubeconfig of an account that has the rights of the named ClusterRole. */
export async function accountKubeconfig(
  access: ClusterAccess,
  client: KubeClient,
  { namespace, clusterRole, folder }: { namespace: string; clusterRole: string; folder: string },
): Promise<string> {
  const name = 'toolhive-registry-api'
  await client.apply(serviceAccounts, { metadata: { name, namespace } }, { fieldManager: 'test', force: true })
  await client.apply(
    clusterRoleBindings,
    {
      metadata: { name: `${namespace}-reader` },
      subjects: [{ kind: 'ServiceAccount', name, namespace }],
      roleRef: { apiGroup: 'rbac.authorization.k8s.io', kind: 'ClusterRole', name: clusterRole },
    } as never,
    { fieldManager: 'test', force: true },
  )
  return await tokenKubeconfig(access, client, { namespace, account: name, folder })
}

/** A kubeconfig with a token of an account. */
export async function tokenKubeconfig(
  access: ClusterAccess,
  client: KubeClient,
  { namespace, account, folder }: { namespace: string; account: string; folder: string },
): Promise<string> {
  const answer = await client.raw('POST', `/api/v1/namespaces/${namespace}/serviceaccounts/${account}/token`, {
    body: { apiVersion: 'authentication.k8s.io/v1', kind: 'TokenRequest', spec: { expirationSeconds: 3600 } },
  })
  const { status } = answer.json() as { status: { token: string } }
  const path = join(folder, `${namespace}.kubeconfig`)
  const ca = Buffer.from(access.caPem).toString('base64')
  const file = {
    apiVersion: 'v1',
    kind: 'Config',
    'current-context': 'test',
    clusters: [{ name: 'test', cluster: { server: access.url, 'certificate-authority-data': ca } }],
    users: [{ name: 'test', user: { token: status.token } }],
    contexts: [{ name: 'test', context: { cluster: 'test', user: 'test' } }],
  }
  writeFileSync(path, JSON.stringify(file))
  return path
}

export interface ClusterRegistry extends AsyncDisposable {
  readonly registry: StartedRegistry
  /** `name` → document, of registry `cluster`. */
  servers(): Promise<Record<string, ServedDocument>>
  /** Waits until they are as wanted. */
  untilServers(wanted: (servers: Record<string, ServedDocument>) => boolean): Promise<Record<string, ServedDocument>>
}

export interface ServedDocument {
  readonly name: string
  readonly description: string
  readonly version: string
  readonly remotes?: readonly { readonly type: string; readonly url: string }[]
  readonly packages?: readonly object[]
  readonly _meta?: Readonly<Record<string, Readonly<Record<string, unknown>>>>
}

/** Asks over a connection of its own: at its end a server waits a second for those that stay open. */
export async function ask(url: string): Promise<Response> {
  const answer = await fetch(url, { headers: { connection: 'close' } })
  return new Response(await answer.text(), { status: answer.status })
}

/** A registry server in this process, in memory, with this configuration. */
export async function startClusterRegistry(config: string, engine: EngineParts = {}): Promise<ClusterRegistry> {
  const folder = mkdtempSync(join(tmpdir(), 'registry-cluster-'))
  writeFileSync(join(folder, 'config.yaml'), config)
  const registry = await startRegistry(['--config', join(folder, 'config.yaml'), '--data-dir', folder], {}, engine)
  let closed = false
  async function servers(): Promise<Record<string, ServedDocument>> {
    const answer = await ask(`${registry.url}/registry/cluster/v0.1/servers?limit=100&version=latest`)
    const { servers: list = [] } = (await answer.json()) as { servers?: { server: ServedDocument }[] }
    return Object.fromEntries(list.map(({ server }) => [server.name, server]))
  }
  return {
    registry,
    servers,
    untilServers: (wanted) =>
      until(async () => {
        const found = await servers()
        return wanted(found) ? found : undefined
      }, FOLLOWED_WITHIN_MS),
    async [Symbol.asyncDispose]() {
      if (closed) return
      closed = true
      await registry[Symbol.asyncDispose]()
      rmSync(folder, { recursive: true, force: true })
    },
  }
}
