import { pods, services, statefulSets } from '@thv/kube'
import { connect, type McpClient, namesOf, whoAmI } from './clients.ts'
import type { Story } from './story.ts'
import { SERVER, type World } from './world.ts'

export const httpServers: Story = {
  title: 'servers that speak streamable HTTP and SSE are used by clients of both eras',
  proves: ['002-205', '002-226', '002-243', '002-244'],
  async tell(world) {
    const { fixture } = world.images
    const env = [{ name: 'GREETING', value: 'grüße' }]
    await world.create(SERVER, 'web', {
      image: fixture,
      transport: 'streamable-http',
      proxyPort: 9090,
      mcpPort: 9000,
      args: ['--name', 'web'],
      env,
    })
    await world.create(SERVER, 'old', { image: fixture, transport: 'sse', port: 7070, args: ['--name', 'old'] })

    const web = await world.reaches(SERVER, 'web', 'Running')
    world.expect(web.url).toBe(await world.urlAt('mcp-web-proxy', 9090, '/mcp'))
    await expectContainer(world, 'web', { args: ['--name', 'web'], env: { ...env[0] } })
    for (const sdk of ['v1', 'v2'] as const) {
      await using client = await connect(sdk, await world.outside(web.url))
      world.expect((await whoAmI(client)).name).toBe('web')
      await expectPassedUnaltered(world, client)
    }
    // The alias leads to the same proxy.
    const alias = await world.client.get(services, world.at('web'))
    await using byAlias = await connect('v2', `http://${world.reach(alias, 9090)}/mcp`)
    world.expect(namesOf(await byAlias.tools())).toContain('echo')

    const old = await world.reaches(SERVER, 'old', 'Running')
    world.expect(old.url).toBe(await world.urlAt('mcp-old-proxy', 7070, '/sse#old'))
    world.expect((await world.client.get(services, world.at('mcp-old-proxy'))).spec?.ports?.map(({ port }) => port)).toEqual([7070])
    await using client = await connect('sse', await world.outside(old.url))
    world.expect((await whoAmI(client)).name).toBe('old')
    await expectPassedUnaltered(world, client)
  },
}

/** Streamed notifications, a large answer and errors of both sorts. */
async function expectPassedUnaltered(world: World, client: McpClient): Promise<void> {
  const progress: number[] = []
  await client.call('test_tool_with_progress', {}, (step) => progress.push(step))
  world.expect(progress).toEqual([0, 50, 100])
  const [block] = (await client.call('big_result', { bytes: 300_000 })).content
  world.expect(block?.text?.length).toBeGreaterThanOrEqual(300_000)
  world.expect(await client.call('test_error_handling')).toMatchObject({ isError: true })
  await world.expect(client.call('rpc_error', { code: -32050, message: 'on demand' })).rejects.toMatchObject({
    code: -32050,
    message: world.expect.stringContaining('on demand'),
    data: { demanded: true },
  })
}

async function expectContainer(world: World, name: string, { args, env }: { args: string[]; env: object }): Promise<void> {
  const set = await world.client.get(statefulSets, world.at(name))
  const pod = await world.client.get(pods, world.at(`${name}-0`))
  for (const spec of [set.spec?.template?.spec, pod.spec]) {
    const container = spec?.containers.find((each) => each.name === 'mcp')
    world
      .expect(container)
      .toMatchObject({ image: world.images.fixture, args, env: world.expect.arrayContaining([world.expect.objectContaining(env)]) })
  }
}
