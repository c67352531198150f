import { type ConfigMap, configMaps, type KubeClient } from '@thv/kube'
import { inParallel } from '../operator/server-load.ts'

export const LABEL = 'bench.example.com/registry'
export const SERVERS_PER_MAP = 20

/** ConfigMaps with registry data of servers that are about as large as public ones. */
export async function createMaps(client: KubeClient, { namespace, count }: { namespace: string; count: number }): Promise<void> {
  await inParallel(
    Array.from({ length: count }, (_, index) => index),
    async (index) => {
      const data = { 'registry.json': registryText(index, 'server') }
      await client.create(configMaps, { metadata: { namespace, name: nameOf(index), labels: { [LABEL]: 'true' } }, data } as ConfigMap)
    },
  )
}

/** Changes one of them. Gives how long its text takes to be parsed and a shard to be written, in µs: the median of many times. */
export async function changeOne(client: KubeClient, change: { namespace: string; index: number; shard: string }): Promise<number> {
  const { namespace, index, shard } = change
  const text = registryText(index, 'changed')
  await client.patch(configMaps, { namespace, name: nameOf(index) }, { kind: 'merge', body: { data: { 'registry.json': text } } })
  const document: unknown = JSON.parse(shard)
  const times = Array.from({ length: 21 }, () => {
    const started = performance.now()
    JSON.parse(text)
    JSON.stringify(document)
    return (performance.now() - started) * 1000
  })
  return times.sort((a, b) => a - b)[10] ?? 0
}

function nameOf(index: number): string {
  return `team-${index}`
}

function registryText(map: number, word: string): string {
  const description = 'Reads and writes the things that a team works with, and finds them again. '.repeat(4)
  const servers = Object.fromEntries(
    Array.from({ length: SERVERS_PER_MAP }, (_, index) => [
      `${word}-${map}-${index}`,
      {
        image: `ghcr.io/org/server-${map}-${index}:1.2.3`,
        transport: 'stdio',
        description,
        tags: ['team', 'search'],
        tools: ['find', 'read'],
      },
    ]),
  )
  return JSON.stringify({ servers })
}
