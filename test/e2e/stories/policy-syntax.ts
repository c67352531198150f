import { deployments } from '@thv/kube'
import { connect, namesOf } from './clients.ts'
import type { Story } from './story.ts'
import { SERVER } from './world.ts'

export const policySyntax: Story = {
  title: 'what must not run open does not run: a policy with a mistake is named, and policies decide what clients see and call',
  proves: ['002-070', '002-066'],
  async tell(world) {
    const { client, at } = world
    const withPolicy = (policy: string) => ({
      image: world.images.fixture,
      transport: 'streamable-http',
      authzConfig: { type: 'inline', inline: { policies: [policy] } },
    })
    await world.create(SERVER, 'guarded', withPolicy('permit(principal, action, resource'))
    // The packaged operator has the parser of policies with it.
    await world.hasReason(SERVER, 'guarded', { condition: 'ConfigurationValid', reason: 'AuthzPolicySyntaxInvalid' })
    await world.reaches(SERVER, 'guarded', 'Failed')
    world.expect(await client.tryGet(deployments, at('guarded'))).toBeUndefined()

    await world.edit(SERVER, 'guarded', withPolicy('permit(principal, action == Action::"call_tool", resource == Tool::"echo");'))
    const { url } = await world.reaches(SERVER, 'guarded', 'Running')
    for (const sdk of ['v1', 'v2'] as const) {
      await using guarded = await connect(sdk, await world.outside(url))
      world.expect(namesOf(await guarded.tools())).toEqual(['echo'])
      world.expect(await guarded.call('echo', { text: 'hi' })).toHaveProperty('structuredContent')
      await world.expect(guarded.call('who_am_i')).rejects.toThrow(/Unauthorized/)
    }

    // An open server whose new guard cannot be resolved is stopped.
    await world.edit(SERVER, 'guarded', { authzConfig: null })
    await world.reaches(SERVER, 'guarded', 'Running')
    await world.edit(SERVER, 'guarded', withPolicy('permit(principal, action, resource'))
    await world.reaches(SERVER, 'guarded', 'Failed')
    await world.eventually('no proxy is left', async () => (await world.proxyPods('guarded')).length === 0)
  },
}
