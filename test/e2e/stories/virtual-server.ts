import { deployments, statefulSets } from '@thv/kube'
import { connect, namesOf, whoAmI } from './clients.ts'
import type { Story } from './story.ts'
import { DEFINITION, GROUP, SERVER, VIRTUAL, type World } from './world.ts'

const NAMES = ['a', 'b', 'c', 'd']

export const virtualServer: Story = {
  title: 'a VirtualMCPServer serves the tools of four MCPServers of a group at one address, and a composite tool with a cycle is refused',
  proves: ['002-123', '002-126', '002-150', '002-157', '002-166', '002-177'],
  async tell(world) {
    const { fixture } = world.images
    await world.create(GROUP, 'desk', {})
    // Two speak stdio behind their proxies, two speak HTTP.
    for (const [index, name] of NAMES.entries())
      await world.create(SERVER, name, {
        image: fixture,
        args: ['--name', `server ${name}`],
        ...(index > 1 && { transport: 'streamable-http' }),
        groupRef: { name: 'desk' },
      })
    await world.create(DEFINITION, 'twice', {
      name: 'say_twice',
      description: 'Says it to two servers.',
      parameters: { type: 'object', properties: { message: { type: 'string' } }, required: ['message'] },
      steps: [
        { id: 'first', tool: 'a.echo', arguments: { message: '{{.params.message}}' } },
        { id: 'second', tool: 'c.echo', arguments: { message: '{{.steps.first.output.arguments.message}} again' }, dependsOn: ['first'] },
      ],
    })
    const spec = { groupRef: { name: 'desk' }, incomingAuth: { type: 'anonymous' }, compositeToolRefs: [{ name: 'twice' }] }
    for (const name of ['one', 'two']) await world.create(VIRTUAL, name, { ...spec, outgoingAuth: { source: 'inline' } })
    await expectCycleRefused(world)
    for (const name of NAMES) await world.reaches(SERVER, name, 'Running')
    for (const name of ['one', 'two']) await expectJoined(world, name)
    world.expect(await world.client.tryGet(statefulSets, world.at('one'))).toBeUndefined()
    world.expect((await world.client.get(deployments, world.at('one'))).spec?.replicas).toBe(1)
  },
}

/** By the webhook, or else in the status. */
async function expectCycleRefused(world: World): Promise<void> {
  const steps = [
    { id: 'a', tool: 'a.echo', dependsOn: ['b'] },
    { id: 'b', tool: 'a.echo', dependsOn: ['a'] },
  ]
  const create = async (name: string) => await world.create(DEFINITION, name, { name: 'circle', description: 'Never ends.', steps })
  if (!world.hasWebhook) {
    await create('circle')
    const { message } = await world.hasReason(DEFINITION, 'circle', { condition: 'WorkflowValidated', reason: 'DependencyCycle' })
    world.expect(message).toContain('a → b → a')
    return
  }
  let count = 0
  const refused = await world.eventually('the webhook refuses a cycle', () =>
    create(`circle-${++count}`).then(
      () => false as const,
      (error: Error) => {
        if (!error.message.includes('denied the request')) throw error
        return error.message
      },
    ),
  )
  world.expect(refused).toMatch(/admission webhook .* denied the request.*a → b → a/s)
}

async function expectJoined(world: World, name: string): Promise<void> {
  const { url: inside } = await world.reaches(VIRTUAL, name, 'Ready')
  world.expect(inside).toBe(await world.urlAt(`vmcp-${name}`, 4483, '/mcp'))
  const url = await world.outside(inside)
  for (const sdk of ['v1', 'v2'] as const) {
    await using client = await connect(sdk, url)
    await world.eventually(`${name} lists the tools of all backends`, async () => {
      const tools = namesOf(await client.tools())
      return NAMES.every((backend) => tools.includes(`${backend}_echo`)) && tools.includes('say_twice')
    })
    for (const backend of NAMES) world.expect((await whoAmI(client, `${backend}_who_am_i`)).name).toBe(`server ${backend}`)
    const { structuredContent } = await client.call('say_twice', { message: 'hello' })
    world.expect(JSON.stringify(structuredContent)).toContain('hello again')
  }
}
