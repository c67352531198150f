import { type ConfigMap, configMaps, deployments, services } from '@thv/kube'
import { startGitServer } from '@thv/testkit/git/git-server'
import { applySeed, waitForServers } from './registry-client.ts'
import type { Story } from './story.ts'
import { REGISTRY, type World } from './world.ts'

const NAME = 'sync-policy'
const file = (...names: string[]) => ({
  'registry.json': JSON.stringify({ servers: Object.fromEntries(names.map((name) => [name, { image: `ghcr.io/org/${name}:1` }])) }),
})
const listed = (...names: string[]) => names.map((name) => `io.github.stacklok/${name}`)

export const registryGit: Story = {
  title: 'a registry from git: an interval, a trigger, a broken commit and its repair; data without an API',
  proves: ['002-079', '002-080', '002-253', '002-255', '002-278'],
  async tell(world) {
    await using git = await startGitServer({ host: world.hostAddress })
    const repository = await git.repository('servers')
    await repository.commit(file('fetch'))
    // The example of design document 002: an interval of one hour.
    await applySeed(world, '002-mcpregistry-sync-policy.yaml', `${git.url}/servers`)
    await world.reaches(REGISTRY, NAME, 'Ready')
    const storage = await world.client.get(configMaps, world.at(`${NAME}-registry-storage`))
    world.expect(Object.keys(storage.data ?? {})).toEqual(['registry.json'])
    await waitForServers(world, NAME, listed('fetch'))

    await repository.commit(file('fetch', 'time'))
    await trigger(world, '1')
    await waitForServers(world, NAME, listed('fetch', 'time'))

    await repository.commit({ 'registry.json': '{"servers":' })
    await trigger(world, '2')
    const failed = await world.reaches(REGISTRY, NAME, 'Failed')
    world.expect(failed.message).toContain('Sync failed')
    // The API goes on with what it has.
    await waitForServers(world, NAME, listed('fetch', 'time'))

    await repository.commit(file('time'))
    await trigger(world, '3')
    await world.reaches(REGISTRY, NAME, 'Ready')
    await waitForServers(world, NAME, listed('time'))

    await world.edit(REGISTRY, NAME, { syncPolicy: { interval: '10s' } })
    await repository.commit(file('fetch', 'later'))
    await waitForServers(world, NAME, listed('fetch', 'later'))

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
  await client.patch(REGISTRY, at(NAME), { kind: 'merge', body: { metadata: { annotations } } })
}
