import { deployments, endpointSlices, statefulSets } from '@thv/kube'
import { askWithPython, connect, namesOf, whoAmI } from './clients.ts'
import type { Story } from './story.ts'
import { SERVER, type World } from './world.ts'

export const stdioServer: Story = {
  title: 'a stdio server is applied, and clients outside the cluster use it over HTTP',
  proves: [
    ...['002-004', '002-008', '002-014', '002-015', '002-016', '002-017', '002-018', '002-019', '002-028'],
    ...['002-058', '002-068', '002-073', '002-202', '002-218'],
  ],
  async tell(world) {
    await world.create(SERVER, 'notes', { image: world.images.fixture, args: ['--name', 'the notes'] })
    const { url: inside, readyReplicas } = await world.reaches(SERVER, 'notes', 'Running')
    world.expect(inside).toBe(await world.urlAt('mcp-notes-proxy', 8080, '/mcp'))
    world.expect(readyReplicas).toBe(1)
    await expectWorkload(world)

    const url = await world.outside(inside)
    await using older = await connect('v1', url)
    await using newer = await connect('v2', url)
    for (const client of [older, newer]) {
      world.expect(namesOf(await client.tools())).toContain('echo')
      world.expect((await whoAmI(client)).name).toBe('the notes')
      const message = 'grüße 👩‍👩‍👧 \u00a0\u2028 "quoted" \\ \n end'
      world.expect((await client.call('echo', { message })).structuredContent).toEqual({ arguments: { message } })
    }
    // One stdin for all of them: no client receives the answer to another's request.
    const calls = Array.from({ length: 50 }, async (_, index) => {
      const { structuredContent } = await (index % 2 === 0 ? older : newer).call('echo', { index, text: 'x'.repeat(index * 100) })
      return (structuredContent as { arguments: { index: number } }).arguments.index
    })
    world.expect(await Promise.all(calls)).toEqual(Array.from({ length: 50 }, (_, index) => index))

    const { tools, texts } = await askWithPython(url, { tool: 'echo', args: { message: 'Grüße aus Python' }, mode: 'auto' })
    world.expect(tools).toContain('echo')
    world.expect(texts.join('')).toContain('Grüße aus Python')

    // The URL of the status is for pods: one of them uses it as it is written there.
    const listed = await world.runInPod('client', ['thv', 'tools', inside ?? '', '--output', 'json'])
    world
      .expect(namesOf(JSON.parse(listed.slice(listed.indexOf('['), listed.lastIndexOf(']') + 1)) as { name: string }[]))
      .toContain('echo')
  },
}

/** One StatefulSet, written by the runner only, behind one Deployment that the Service leads to. */
async function expectWorkload(world: World): Promise<void> {
  const { client, namespace, operator } = world
  // The operator looks at the pods; who counts them, and who leads to them, may come after it.
  const sets = await world.eventually('the StatefulSet has counted its pods', async () => {
    const { items } = await client.list(statefulSets, { namespace })
    return items.every(({ status }) => status?.readyReplicas) && items
  })
  world.expect(sets.map(({ metadata, spec, status }) => [metadata.name, spec?.replicas, status?.readyReplicas])).toEqual([['notes', 1, 1]])
  const managers = sets.flatMap(({ metadata }) => (metadata as Managed).managedFields.map(({ manager }) => manager))
  world.expect(managers.filter((manager) => manager !== 'kube-controller-manager')).toEqual(['toolhive-container-manager'])

  world.expect((await client.list(deployments, { namespace })).items.map(({ metadata }) => metadata.name)).toEqual(['notes'])
  const [proxy] = await world.proxyPods('notes')
  const container = proxy?.spec?.containers[0]
  world.expect(container).toMatchObject({ image: world.images.apps, command: ['thv-proxyrunner'], args: ['run'] })
  world.expect(container?.['volumeMounts']).toContainEqual({ name: 'runconfig', mountPath: '/etc/runconfig', readOnly: true })
  world
    .expect(proxy?.spec?.['volumes'])
    .toContainEqual({ name: 'runconfig', configMap: world.expect.objectContaining({ name: 'notes-runconfig' }) })
  const own = await client.get(deployments, { namespace: operator.namespace, name: operator.deployment })
  world.expect(own.spec?.template?.spec?.containers[0]).toMatchObject({ command: ['thv-operator'] })

  const addresses = await world.eventually('the Service leads somewhere', async () => {
    const slices = await client.list(endpointSlices, { namespace, labelSelector: 'kubernetes.io/service-name=mcp-notes-proxy' })
    const all = slices.items.flatMap(({ endpoints = [] }) => endpoints.flatMap((endpoint) => endpoint.addresses))
    return all.length > 0 && all
  })
  world.expect(addresses).toEqual([proxy?.status?.podIP])
}

interface Managed {
  readonly managedFields: readonly { readonly manager: string }[]
}
