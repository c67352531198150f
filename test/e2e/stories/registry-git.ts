import { type ConfigMap, configMaps, deployments, services } from '@thv/kube'
import { startGitServer } from '@thv/testkit/git/git-server'
import { waitForServers } from './registry-client.ts'
import type { Story } from './story.ts'
import { REGISTRY, type World } from './world.ts'

const file = (...names: string[]) => ({
  'registry.json': JSON.stringify({ servers: Object.fromEntries(names.map((name) => [name, { image: `ghcr.io/org/${name}:1` }])) }),
})
const listed = (...names: string[]) => names.map((name) => `io.github.stacklok/${name}`)

export const registryGit: Story = {
  title: 'a registry from git: a trigger, a broken commit and its repair; data without an API',
  proves: ['002-079', '002-080', '002-253', '002-255', '002-278'],
  async tell(world) {
    await using git = await startGitServer({ host: world.hostAddress })
    const repository = await git.repository('servers')
    await repository.commit(file('fetch'))
    await world.create(REGISTRY, 'from-git', {
      source: { type: 'git', git: { repository: `${git.url}/servers`, branch: 'main' } },
      syncPolicy: { interval: '24h' },
    })
    await world.reaches(REGISTRY, 'from-git', 'Ready')
    await waitForServers(world, 'from-git', listed('fetch'))

    await repository.commit(file('fetch', 'time'))
    await trigger(world, '1')
    await waitForServers(world, 'from-git', listed('fetch', 'time'))

    await repository.commit({ 'registry.json': '{"servers":' })
    await trigger(world, '2')
    const failed = await world.reaches(REGISTRY, 'from-git', 'Failed')
    world.expect(failed.message).toContain('Sync failed')
    // The API goes on with what it has.
    await waitForServers(world, 'from-git', listed('fetch', 'time'))

    await repository.commit(file('time'))
    await trigger(world, '3')
    await world.reaches(REGISTRY, 'from-git', 'Ready')
    await waitForServers(world, 'from-git', listed('time'))

    const source = { metadata: world.at('plain'), data: file('fetch') } as ConfigMap
    await world.client.create(configMaps, source)
    await world.create(REGISTRY, 'data-only', { source: { configMap: { name: 'plain' } }, api: { enabled: false } })
    await world.reaches(REGISTRY, 'data-only', 'Ready')
    const stored = await world.client.get(configMaps, world.at('data-only-registry-storage'))
    world.expect(JSON.parse(stored.data?.['registry.json'] ?? '')).toMatchObject(JSON.parse(file('fetch')['registry.json']))
    world.expect(await world.client.tryGet(deployments, world.at('data-only-api'))).toBeUndefined()
    world.expect(await world.client.tryGet(services, world.at('data-only-api'))).toBeUndefined()
  },
}

async function trigger({ client, at }: World, value: string): Promise<void> {
  const annotations = { 'toolhive.stacklok.dev/sync-trigger': value }
  await client.patch(REGISTRY, at('from-git'), { kind: 'merge', body: { metadata: { annotations } } })
}
