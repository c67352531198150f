import { configMaps } from '@thv/kube'
import { startGitServer } from '@thv/testkit/git/git-server'
import type { Story } from './story.ts'
import { REGISTRY, type World } from './world.ts'

const MIB = 1024 * 1024
/** Of a server's description, about. */
const TEXT_BYTES = 4096

export const registrySize: Story = {
  title: 'three megabytes of registry data are served from several ConfigMaps; forty are refused, and the old ones stay served',
  proves: [],
  async tell(world) {
    await using git = await startGitServer({ host: world.hostAddress })
    const repository = await git.repository('large')
    await repository.commit({ 'registry.json': registryOf(3 * MIB) })
    await world.create(REGISTRY, 'large', { source: { type: 'git', git: { repository: `${git.url}/large`, branch: 'main' } } })
    await world.reaches(REGISTRY, 'large', 'Ready')
    const count = Math.ceil((3 * MIB) / TEXT_BYTES)
    await world.eventually('all servers are listed', async () => (await listedCount(world)) === count)
    const first = await world.client.get(configMaps, world.at('large-registry-storage'))
    const second = await world.client.get(configMaps, world.at('large-registry-storage-1'))
    for (const map of [first, second]) world.expect(map.data?.['registry.json']?.length).toBeLessThan(MIB)

    await repository.commit({ 'registry.json': registryOf(40 * MIB) })
    const annotations = { 'toolhive.stacklok.dev/sync-trigger': '1' }
    await world.client.patch(REGISTRY, world.at('large'), { kind: 'merge', body: { metadata: { annotations } } })
    const failed = await world.reaches(REGISTRY, 'large', 'Failed')
    world.expect(failed.conditions?.map(({ reason }) => reason)).toContain('StorageTooLarge')
    world.expect(failed.message).toContain('are served')
    world.expect(await listedCount(world)).toBe(count)
    world.expect((await world.client.get(configMaps, world.at('large-registry-storage'))).data).toEqual(first.data)
  },
}

function registryOf(bytes: number): string {
  const names = Array.from({ length: Math.ceil(bytes / TEXT_BYTES) }, (_, index) => `server-${index}`)
  const description = 'A server of this story. '.repeat(TEXT_BYTES).slice(0, TEXT_BYTES - 80)
  return JSON.stringify({ servers: Object.fromEntries(names.map((name) => [name, { image: `ghcr.io/org/${name}:1`, description }])) })
}

/** Over all pages of the API. */
async function listedCount(world: World): Promise<number> {
  const { status } = await world.client.get(REGISTRY, world.at('large'))
  const base = (await world.outside(status?.url)).replace(/\/$/, '')
  let count = 0
  let cursor = ''
  do {
    const query = `limit=100${cursor && `&cursor=${encodeURIComponent(cursor)}`}`
    const answer = await fetch(`${base}/registry/large/v0.1/servers?${query}`, { signal: AbortSignal.timeout(60_000) })
    if (!answer.ok) throw new Error(`the API answers ${answer.status}`)
    const page = (await answer.json()) as { servers: unknown[]; metadata?: { nextCursor?: string } }
    count += page.servers.length
    cursor = page.metadata?.nextCursor ?? ''
  } while (cursor !== '')
  return count
}
