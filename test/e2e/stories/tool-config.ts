import { connect, namesOf } from './clients.ts'
import type { Story } from './story.ts'
import { SERVER, TOOLS, type World } from './world.ts'

export const toolConfig: Story = {
  title: 'an MCPToolConfig filters and renames tools, and an edit reaches every server that uses it',
  proves: [],
  async tell(world) {
    const { fixture } = world.images
    await world.create(TOOLS, 'kind', { toolsFilter: ['say'], toolsOverride: { echo: { name: 'say', description: 'Says it again' } } })
    await world.create(SERVER, 'piped', { image: fixture, toolConfigRef: { name: 'kind' } })
    await world.create(SERVER, 'web', { image: fixture, transport: 'streamable-http', toolConfigRef: { name: 'kind' } })
    for (const name of ['piped', 'web']) {
      const { url } = await world.reaches(SERVER, name, 'Running')
      await using client = await connect('v2', await world.outside(url))
      world.expect(await client.tools()).toMatchObject([{ name: 'say', description: 'Says it again' }])
      world.expect((await client.call('say', { message: 'Grüße' })).structuredContent).toEqual({ arguments: { message: 'Grüße' } })
      // Neither what was filtered out nor the old name of what was renamed.
      for (const hidden of ['who_am_i', 'echo']) await world.expect(client.call(hidden)).rejects.toThrow()
    }
    const uids = await uidsOfServer(world)

    await world.edit(TOOLS, 'kind', { toolsFilter: ['greet', 'echo'], toolsOverride: null })
    for (const name of ['piped', 'web']) {
      const { url } = await world.client.get(SERVER, world.at(name)).then(({ status }) => status ?? {})
      const outside = await world.outside(url)
      await world.eventually(`${name} shows what the edit says`, async () => {
        await using client = await connect('v1', outside)
        const tools = namesOf(await client.tools()).toSorted()
        return tools.join() === 'echo,greet' || Promise.reject(new Error(`tools are ${tools.join()}`))
      })
      await world.reaches(SERVER, name, 'Running')
    }
    // The tool filter is in the proxy: the server keeps running.
    world.expect(await uidsOfServer(world)).toEqual(uids)
  },
}

/** Of the one that speaks HTTP: a process that speaks stdio takes one greeting for life, so a new proxy may need a new one. */
async function uidsOfServer(world: World): Promise<unknown[]> {
  return (await world.serverPods('web')).map(({ metadata }) => metadata.uid)
}
