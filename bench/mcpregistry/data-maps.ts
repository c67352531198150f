import { type ConfigMap, configMaps, type KubeClient } from '@thv/kube'
import { inParallel } from '../operator/server-load.ts'

export const LABEL = 'bench.example.com/registry'
export const SERVERS_PER_MAP = 20

/** ConfigMaps with registry data of servers that are about as large as public ones. */
export async function createMaps(client: KubeClient, { namespace, count }: { namespace: string; count: number }): Promise<void> {
  await inParallel(
    Array.from({ length: count }, (_, index) => index),
    async (index) => {
      const data = { 'registry.json': registryText(index) }
      await client.create(configMaps, { metadata: { namespace, name: nameOf(index), labels: { [LABEL]: 'true' } }, data } as ConfigMap)
    },
  )
}

/** Changes the description of one server of one ConfigMap, as people do. Gives the new text. */
export async function changeOne(client: KubeClient, change: { namespace: string; index: number; description: string }): Promise<string> {
  const { namespace, index, description } = change
  const text = registryText(index, description)
  await client.patch(configMaps, { namespace, name: nameOf(index) }, { kind: 'merge', body: { data: { 'registry.json': text } } })
  return text
}

export function nameOf(index: number): string {
  return `team-${index}`
}

export function registryText(map: number, first?: string): string {
  const description = 'Reads and writes the things that a team works with, and finds them again. '.repeat(4)
  const servers = Object.fromEntries(
    Array.from({ length: SERVERS_PER_MAP }, (_, index) => [
      `server-${map}-${index}`,
      {
        image: `ghcr.io/org/server-${map}-${index}:1.2.3`,
        transport: 'stdio',
        description: index === 0 ? (first ?? description) : description,
        tags: ['team', 'search'],
        tools: ['find', 'read'],
      },
    ]),
  )
  return JSON.stringify({ servers })
}
