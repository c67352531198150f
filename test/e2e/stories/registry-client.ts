import { readFileSync } from 'node:fs'
import { type ConfigMap, configMaps, type KubeObject } from '@thv/kube'
import { manifestsIn } from '@thv/resources/testing/fixtures'
import { REGISTRY, type Resource, type World } from './world.ts'

export interface ListedServer {
  readonly name: string
  readonly remotes?: readonly { readonly type: string; readonly url: string }[]
  readonly packages?: readonly { readonly identifier?: string }[]
}

/** All servers of an MCPRegistry, from its API. */
export async function listedServers(world: World, registry: string): Promise<ListedServer[]> {
  const { status } = await world.client.get(REGISTRY, world.at(registry))
  const base = (await world.outside(status?.url)).replace(/\/$/, '')
  const answer = await fetch(`${base}/registry/${registry}/v0.1/servers?limit=100`, { signal: AbortSignal.timeout(30_000) })
  if (!answer.ok) throw new Error(`the API answers ${answer.status}`)
  const { servers } = (await answer.json()) as { servers: { server: ListedServer }[] }
  return servers.map(({ server }) => server)
}

/** Waits until the API lists these names and no others. */
export function waitForServers(world: World, registry: string, names: readonly string[]): Promise<ListedServer[]> {
  const wanted = [...names].sort().join(', ')
  return world.eventually(`${registry} lists ${wanted}`, async () => {
    const servers = await listedServers(world, registry)
    const found = servers.map(({ name }) => name).sort()
    if (found.join(', ') !== wanted) throw new Error(`it lists ${found.join(', ')}`)
    return servers
  })
}

/** Applies an example of a design document: all as printed, but for the namespace and the address of the git repository. */
export async function applySeed(world: World, file: string, repository: string): Promise<void> {
  const text = readFileSync(new URL(`../../fixtures/seeds/${file}`, import.meta.url), 'utf8')
  for (const manifest of manifestsIn(text.replace('https://github.com/org/mcp-registry', repository))) {
    const { kind, metadata, ...rest } = manifest as unknown as KubeObject
    const object = { ...rest, metadata: { ...metadata, namespace: world.namespace } }
    if (kind === 'ConfigMap') await world.client.create(configMaps, object as ConfigMap)
    else await world.client.create({ ...REGISTRY, version: manifest.apiVersion.split('/')[1] ?? '' }, object as Resource)
  }
}
