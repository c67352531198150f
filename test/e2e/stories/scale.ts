import { deployments, endpointSlices, type Pod, pods, statefulSets } from '@thv/kube'
import { connect, namesOf, whoAmI } from './clients.ts'
import type { Story } from './story.ts'
import { SERVER, type World } from './world.ts'

export const scale: Story = {
  title: 'proxies and servers are scaled, each by its own number; a stdio server keeps one proxy',
  proves: ['002-007', '004-076'],
  async tell(world) {
    const { fixture } = world.images
    await world.create(SERVER, 'web', { image: fixture, transport: 'streamable-http' })
    await world.create(SERVER, 'piped', { image: fixture, replicas: 3 })
    const { url } = await world.reaches(SERVER, 'web', 'Running')
    const outside = await world.outside(url)
    const [first] = uids(await world.proxyPods('web'))

    await scaleTo(world, 'web', 3)
    await world.eventually(
      'three proxies are ready',
      async () => (await world.client.get(SERVER, world.at('web'))).status?.readyReplicas === 3,
    )
    world.expect((await world.client.get(statefulSets, world.at('web'))).spec?.replicas).toBe(1)
    // No pod was restarted for it.
    world.expect(uids(await world.proxyPods('web'))).toContain(first)
    await world.eventually('the Service leads to all three', async () => (await readyAddresses(world)).length === 3)

    await world.edit(SERVER, 'web', { backendReplicas: 2 })
    await world.eventually(
      'two servers are ready',
      async () => (await world.client.get(statefulSets, world.at('web'))).status?.readyReplicas === 2,
    )
    world.expect((await world.client.get(deployments, world.at('web'))).spec?.replicas).toBe(3)
    await world.eventually('all proxies know of both servers', async () => await isRolledOut(world, 'web'))
    await using session = await connect('v1', outside)
    world.expect((await whoAmI(session)).instance).toBe((await whoAmI(session)).instance)

    await scaleTo(world, 'web', 1)
    await world.eventually('one proxy is left', async () => (await world.client.get(SERVER, world.at('web'))).status?.replicas === 1)
    await world.eventually('it serves', async () => {
      await using client = await connect('v2', outside)
      return namesOf(await client.tools()).includes('echo')
    })

    await world.reaches(SERVER, 'piped', 'Running')
    await world.hasReason(SERVER, 'piped', { condition: 'StdioReplicaCapped', reason: 'StdioTransportCapAt1' })
    world.expect(await world.proxyPods('piped')).toHaveLength(1)
    await scaleTo(world, 'piped', 0)
    await world.reaches(SERVER, 'piped', 'Stopped')
    await scaleTo(world, 'piped', 1)
    await world.reaches(SERVER, 'piped', 'Running')
  },
}

/** As `kubectl scale` and autoscalers do it. */
async function scaleTo({ client, at }: World, name: string, replicas: number): Promise<void> {
  await client.patch(SERVER, at(name), { kind: 'merge', body: { spec: { replicas } } }, { subresource: 'scale' })
}

/** And the older proxies are gone: the session of one that is about to go would go with it. */
async function isRolledOut({ client, at, namespace }: World, name: string): Promise<boolean> {
  const { metadata, spec, status = {} } = await client.get(deployments, at(name))
  const { items } = await client.list(pods, { namespace, labelSelector: `app=mcpserver,toolhive-name=${name}` })
  const counts = [status.updatedReplicas, status.availableReplicas, items.length]
  return status.observedGeneration === metadata.generation && counts.every((count) => count === spec?.replicas)
}

function uids(all: readonly Pod[]): (string | undefined)[] {
  return all.map(({ metadata }) => metadata.uid)
}

async function readyAddresses({ client, namespace }: World): Promise<string[]> {
  const { items } = await client.list(endpointSlices, { namespace, labelSelector: 'kubernetes.io/service-name=mcp-web-proxy' })
  return items.flatMap(({ endpoints = [] }) => endpoints.flatMap(({ addresses, conditions }) => (conditions?.ready ? addresses : [])))
}
