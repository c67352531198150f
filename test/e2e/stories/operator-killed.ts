import { deployments, leases, pods } from '@thv/kube'
import { ask, connect, whoAmI } from './clients.ts'
import type { Story } from './story.ts'
import { SERVER, type World } from './world.ts'

export const operatorKilled: Story = {
  title: 'the working operator is killed: servers go on, another takes over, and nothing is restarted',
  proves: ['002-005', '002-195'],
  disturbsOthers: true,
  async tell(world) {
    const { fixture } = world.images
    await world.create(SERVER, 'piped', { image: fixture })
    await world.create(SERVER, 'web', { image: fixture, transport: 'streamable-http' })
    const urls = await Promise.all(
      ['piped', 'web'].map(async (name) => await world.outside((await world.reaches(SERVER, name, 'Running')).url)),
    )
    const clients = await Promise.all(urls.map((url) => connect('v1', url)))
    const before = await everything(world)
    const leader = await leaderOf(world)

    await world.client.delete(pods, { namespace: world.operator.namespace, name: leader }, { gracePeriodSeconds: 0 })
    for (const client of clients) world.expect(await whoAmI(client)).toBeDefined()
    await world.create(SERVER, 'late', { image: fixture, transport: 'streamable-http' })
    await world.eventually('another one leads', async () => (await leaderOf(world)) !== leader)
    const { url } = await world.reaches(SERVER, 'late', 'Running')
    world.expect((await ask(await world.outside(url), 'who_am_i')).structuredContent).toMatchObject({ name: 'mcp-fixture' })

    // The sessions of before are still good, and the objects are those of before, not even written to.
    for (const client of clients) {
      world.expect(await whoAmI(client)).toBeDefined()
      await client[Symbol.asyncDispose]()
    }
    world.expect(await everything(world)).toEqual(before)

    // With none of them left nothing changes for clients either.
    const operator = { namespace: world.operator.namespace, name: world.operator.deployment }
    const setReplicas = (replicas: number) => world.client.patch(deployments, operator, { kind: 'merge', body: { spec: { replicas } } })
    const replicas = (await world.client.get(deployments, operator)).spec?.replicas ?? 1
    await setReplicas(0)
    await world.eventually('no operator runs', async () => (await operatorPods(world)).length === 0)
    for (const each of urls)
      world.expect((await ask(each, 'echo', { message: 'still' })).structuredContent).toEqual({ arguments: { message: 'still' } })
    await setReplicas(replicas)
    await world.eventually(
      'the operator is back',
      async () => (await world.client.get(deployments, operator)).status?.availableReplicas === replicas,
    )
    await world.edit(SERVER, 'late', { args: ['--name', 'edited'] })
    await world.reaches(SERVER, 'late', 'Running')
    await world.eventually(
      'the edit is rolled out',
      async () => (await ask(await world.outside(url), 'who_am_i')).structuredContent?.['name'] === 'edited',
    )
    world.expect(await everything(world)).toEqual(before)
  },
}

async function operatorPods({ client, operator }: World) {
  return (await client.list(pods, { namespace: operator.namespace, labelSelector: 'app.kubernetes.io/name=toolhive-operator' })).items
}

async function leaderOf(world: World): Promise<string> {
  const { items } = await world.client.list(leases, { namespace: world.operator.namespace })
  const holders = items.flatMap(({ spec }) => (spec?.holderIdentity ? [spec.holderIdentity] : []))
  const names = (await operatorPods(world)).map(({ metadata }) => metadata.name)
  const leader = names.find((name) => holders.some((holder) => holder.startsWith(name)))
  if (leader === undefined) throw new Error(`no pod of ${names.join(', ')} holds a Lease (${holders.join(', ')})`)
  return leader
}

/** Pods with their starts, and versions of what the operator writes, of the servers that were there first. */
async function everything(world: World): Promise<unknown> {
  return await Promise.all(
    ['piped', 'web'].map(async (name) => {
      const all = [...(await world.proxyPods(name)), ...(await world.serverPods(name))]
      const deployment = await world.client.get(deployments, world.at(name))
      return {
        pods: all.map(({ metadata, status }) => [metadata.uid, status?.containerStatuses?.map(({ restartCount }) => restartCount)]),
        deployment: [deployment.metadata.uid, deployment.metadata.generation],
      }
    }),
  )
}
