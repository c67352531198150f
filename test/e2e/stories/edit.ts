import { pods } from '@thv/kube'
import { connect, whoAmI } from './clients.ts'
import type { Story } from './story.ts'
import { SERVER } from './world.ts'

export const edit: Story = {
  title: 'an edit of image, arguments and environment is rolled out, and clients go on',
  proves: [],
  async tell(world) {
    const { fixture, sameFixture } = world.images
    const http = { transport: 'streamable-http' }
    await world.create(SERVER, 'piped', { image: fixture, args: ['--name', 'first'] })
    await world.create(SERVER, 'web', { ...http, image: fixture, args: ['--name', 'first'] })
    const urls = new Map<string, string>()
    for (const name of ['piped', 'web']) urls.set(name, await world.outside((await world.reaches(SERVER, name, 'Running')).url))
    await using client = await connect('v2', urls.get('web') ?? '')
    world.expect((await whoAmI(client)).name).toBe('first')

    const change = { image: sameFixture, args: ['--name', 'second'], env: [{ name: 'LEVEL', value: 'debug' }] }
    for (const name of urls.keys()) await world.edit(SERVER, name, change)
    // A client of the newest era has no session to lose: it asks again and is served by what was asked for.
    await world.eventually('the client is answered by the edited server', async () => (await whoAmI(client)).name === 'second')
    for (const [name, url] of urls) {
      await world.reaches(SERVER, name, 'Running')
      await world.eventually(`${name} is the edited one for new sessions`, async () => {
        await using fresh = await connect('v1', url)
        return (await whoAmI(fresh)).name === 'second'
      })
      const pod = await world.client.get(pods, world.at(`${name}-0`))
      const env = world.expect.arrayContaining([{ name: 'LEVEL', value: 'debug' }])
      world.expect(pod.spec?.containers[0]).toMatchObject({ image: sameFixture, env })
      // Nothing of the older generation is left.
      await world.eventually(`one proxy of ${name}`, async () => (await world.proxyPods(name)).length === 1)
      world.expect(await world.serverPods(name)).toHaveLength(1)
    }
  },
}
