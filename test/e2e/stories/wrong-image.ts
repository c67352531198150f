import { ask } from './clients.ts'
import type { Story } from './story.ts'
import { SERVER } from './world.ts'

export const wrongImage: Story = {
  title: 'a server whose image cannot be pulled says so, and runs once the image is corrected',
  proves: [],
  async tell(world) {
    const image = 'localhost:1/no-such-image:1'
    await world.create(SERVER, 'typo', { image })
    const { message } = await world.hasReason(SERVER, 'typo', { condition: 'Ready', reason: 'ImagePullBackOff' })
    world.expect(message).toContain(image)
    world.expect((await world.client.get(SERVER, world.at('typo'))).status?.phase).not.toBe('Running')
    await world.edit(SERVER, 'typo', { image: world.images.fixture })
    const { url } = await world.reaches(SERVER, 'typo', 'Running')
    world
      .expect((await ask(await world.outside(url), 'echo', { message: 'here' })).structuredContent)
      .toEqual({ arguments: { message: 'here' } })
  },
}
