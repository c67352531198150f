import { deployments } from '@thv/kube'
import type { Story } from './story.ts'
import { SERVER } from './world.ts'

export const policySyntax: Story = {
  title: 'what must not run open does not run: a policy with a mistake is named, and a server with policies never stands open',
  proves: ['002-070'],
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

    await world.edit(SERVER, 'guarded', withPolicy('permit(principal, action, resource);'))
    await world.eventually('the mistake is no longer told', async () => {
      const { conditions = [] } = (await client.get(SERVER, at('guarded'))).status ?? {}
      return conditions.some(({ type, status }) => type === 'ConfigurationValid' && status === 'True')
    })
    // The proxy of this version cannot apply policies, so there is none.
    await world.hasReason(SERVER, 'guarded', { condition: 'MiddlewareUnsupported', reason: 'MiddlewareUnsupported' })
    await world.reaches(SERVER, 'guarded', 'Failed')
    world.expect((await client.get(deployments, at('guarded'))).spec?.replicas).toBe(0)
    world.expect(await world.proxyPods('guarded')).toEqual([])

    // An open server whose new guard cannot be resolved is stopped.
    await world.edit(SERVER, 'guarded', { authzConfig: null })
    await world.reaches(SERVER, 'guarded', 'Running')
    await world.edit(SERVER, 'guarded', withPolicy('permit(principal, action, resource);'))
    await world.reaches(SERVER, 'guarded', 'Failed')
    await world.eventually('no proxy is left', async () => (await world.proxyPods('guarded')).length === 0)
  },
}
