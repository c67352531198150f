import {
  configMaps,
  deployments,
  events,
  networkPolicies,
  pods,
  type ResourceType,
  replicaSets,
  roleBindings,
  roles,
  serviceAccounts,
  services,
  statefulSets,
} from '@thv/kube'
import type { Story } from './story.ts'
import { SERVER, TOOLS, type World } from './world.ts'

const CHILDREN: readonly ResourceType[] = [
  ...[deployments, replicaSets, statefulSets, pods],
  ...[services, configMaps, serviceAccounts, roles, roleBindings, networkPolicies],
]

export const deletion: Story = {
  title: 'a deleted server takes its objects along; a config in use is deleted when its last user is gone',
  proves: ['002-071', '002-201'],
  async tell(world) {
    const { fixture } = world.images
    // Its account and its certificates come a moment after the namespace.
    const before = await world.eventually('the namespace has what is its own', async () => {
      const names = await namesOfAll(world)
      return names.length >= 2 && names
    })
    await world.create(TOOLS, 'kind', { toolsFilter: ['echo'] })
    const permissionProfile = { type: 'builtin', name: 'none' }
    await world.create(SERVER, 'piped', { image: fixture, toolConfigRef: { name: 'kind' }, permissionProfile })
    await world.create(SERVER, 'web', { image: fixture, transport: 'streamable-http', toolConfigRef: { name: 'kind' }, permissionProfile })
    for (const name of ['piped', 'web']) await world.reaches(SERVER, name, 'Running')

    await world.client.delete(TOOLS, world.at('kind'))
    const { message } = await world.hasReason(TOOLS, 'kind', { condition: 'DeletionBlocked', reason: 'ReferencedByWorkloads' })
    world.expect(message).toMatch(/piped/)
    await world.eventually('an event names who holds it', async () =>
      (await world.client.list(events, { namespace: world.namespace })).items.some(
        ({ regarding, note }) => regarding?.kind === 'MCPToolConfig' && /web/.test(note ?? ''),
      ),
    )
    // Its users go on with it meanwhile.
    await world.reaches(SERVER, 'web', 'Running')

    const { ownerReferences } = (await world.client.get(deployments, world.at('web'))).metadata
    world.expect(ownerReferences).toMatchObject([{ kind: 'MCPServer', name: 'web', controller: true }])
    await world.client.delete(SERVER, world.at('piped'))
    await holdWith(world, ['example.com/hold'])
    await world.client.delete(SERVER, world.at('web'))
    await world.eventually(
      'web is Terminating',
      async () => (await world.client.get(SERVER, world.at('web'))).status?.phase === 'Terminating',
    )
    await holdWith(world, null)
    await world.eventually('the config is gone', async () => (await world.client.tryGet(TOOLS, world.at('kind'))) === undefined)
    await world.eventually('all is as it was before', async () => {
      const left = (await namesOfAll(world)).filter((name) => !before.includes(name))
      return left.length === 0 || Promise.reject(new Error(`left: ${left.join(', ')}`))
    })
  },
}

async function namesOfAll({ client, namespace }: World): Promise<string[]> {
  const lists = await Promise.all(CHILDREN.map(async (type) => (await client.list(type, { namespace })).items))
  return lists.flat().map(({ kind, metadata }) => `${kind} ${metadata.name}`)
}

/** Somebody else's reason to keep the object for a while. */
async function holdWith({ client, at }: World, finalizers: string[] | null): Promise<void> {
  await client.patch(SERVER, at('web'), { kind: 'merge', body: { metadata: { finalizers } } })
}
