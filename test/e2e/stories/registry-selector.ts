import { type ConfigMap, configMaps, pods } from '@thv/kube'
import { startGitServer } from '@thv/testkit/git/git-server'
import { applySeed, waitForServers } from './registry-client.ts'
import type { Story } from './story.ts'
import type { World } from './world.ts'

const LABEL = 'toolhive.stacklok.dev/registry'
const LIST = 'io.github.stacklok'

/** The examples of design document 003, in the namespace of the story. */
export const registrySelector: Story = {
  title: 'ConfigMaps with a label are one registry: they join and leave it while it serves',
  proves: [
    ...['003-004', '003-013', '003-016', '003-018', '003-031', '003-054', '003-063', '003-064'],
    ...['003-081', '003-082', '003-083', '003-084', '003-087', '003-090', '003-107'],
    '002-031',
  ],
  async tell(world) {
    await using git = await startGitServer({ host: world.hostAddress })
    const repository = await git.repository('mcp-registry')
    await repository.commit({ 'registry.json': JSON.stringify({ servers: { 'community-mcp': { image: 'ghcr.io/org/community:1' } } }) })

    await dataMap(world, 'core-mcp-servers', { servers: [{ name: 'core-mcp', image: 'ghcr.io/org/core:1' }] }, { team: 'core' })
    await dataMap(world, 'core-rest', { servers: [{ name: 'rest-mcp', image: 'ghcr.io/org/rest:1' }] }, { team: 'core' })
    await using _elsewhere = await mapElsewhere(world, { servers: { 'foreign-mcp': { image: 'ghcr.io/org/foreign:1' } } })
    for (const file of ['basic-label-selection', 'with-filtering', 'multiple-label-matching', 'mixed-sources'])
      await applySeed(world, `003-${file}.yaml`, `${git.url}/mcp-registry`)

    const conflict = ['team-a-mcp-servers/github-mcp', 'team-b-mcp-servers/github-mcp']
    const all = [...conflict, `${LIST}/slack-mcp`, `${LIST}/snowflake-mcp`]
    const basic = await waitForServers(world, 'all-teams-registry', all)
    const image = (name: string) => basic.find((server) => server.name === name)?.packages?.[0]?.identifier
    world.expect(image(`${LIST}/slack-mcp`)).toBe('ghcr.io/slack/mcp-server:latest')
    world.expect(conflict.map(image)).toEqual(['ghcr.io/github/mcp-server:latest', 'ghcr.io/github/mcp-server:v2'])
    await waitForServers(world, 'filtered-registry', [`${LIST}/slack-mcp`, `${LIST}/snowflake-mcp`])
    await waitForServers(world, 'platform-only-registry', [`${LIST}/github-mcp`, `${LIST}/slack-mcp`])
    await waitForServers(world, 'mixed-sources-registry', [...all, `${LIST}/core-mcp`, `${LIST}/community-mcp`])

    const before = await apiPods(world, 'all-teams-registry')
    world.expect(before.length).toBe(1)
    await dataMap(world, 'newcomers', { servers: { 'new-mcp': { image: 'ghcr.io/org/new:1' } } }, {})
    const label = (value: string | null) =>
      world.client.patch(configMaps, world.at('newcomers'), { kind: 'merge', body: { metadata: { labels: { [LABEL]: value } } } })
    await label('true')
    await waitForServers(world, 'all-teams-registry', [...all, `${LIST}/new-mcp`])
    const body = { data: { 'registry.json': JSON.stringify({ servers: { 'newer-mcp': { image: 'ghcr.io/org/new:2' } } }) } }
    await world.client.patch(configMaps, world.at('newcomers'), { kind: 'merge', body })
    await waitForServers(world, 'all-teams-registry', [...all, `${LIST}/newer-mcp`])
    await label(null)
    await waitForServers(world, 'all-teams-registry', all)
    await world.client.delete(configMaps, world.at('team-b-mcp-servers'))
    await waitForServers(world, 'all-teams-registry', [`${LIST}/github-mcp`, `${LIST}/slack-mcp`])
    // The pods are those of before.
    world.expect(await apiPods(world, 'all-teams-registry')).toEqual(before)
    await waitForServers(world, 'filtered-registry', [`${LIST}/slack-mcp`])
  },
}

async function dataMap(world: World, name: string, file: object, labels: Record<string, string>): Promise<void> {
  await world.client.create(configMaps, {
    metadata: { ...world.at(name), labels },
    data: { 'registry.json': JSON.stringify(file) },
  } as ConfigMap)
}

/** A ConfigMap with the label in another namespace, for as long as the story lasts. */
async function mapElsewhere({ client, namespace }: World, file: object): Promise<AsyncDisposable> {
  const key = { namespace: 'default', name: `foreign-${namespace}` }
  const data = { 'registry.json': JSON.stringify(file) }
  await client.create(configMaps, { metadata: { ...key, labels: { [LABEL]: 'true' } }, data } as ConfigMap)
  return { [Symbol.asyncDispose]: async () => void (await client.delete(configMaps, key)) }
}

async function apiPods({ client, namespace }: World, registry: string) {
  const labelSelector = `app.kubernetes.io/name=${registry}-api`
  return (await client.list(pods, { namespace, labelSelector })).items.map(({ metadata, spec, status }) => ({
    uid: metadata.uid,
    restarts: status?.containerStatuses?.map(({ restartCount }) => restartCount),
    // No token: the server knows nothing of Kubernetes.
    hasToken: spec?.automountServiceAccountToken,
  }))
}
