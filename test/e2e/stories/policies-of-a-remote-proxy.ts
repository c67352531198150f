import { configMaps } from '@thv/kube'
import { startFixture } from '@thv/testkit/mcp/fixture'
import { connect, namesOf } from './clients.ts'
import type { Story } from './story.ts'
import { REMOTE } from './world.ts'

const PERMIT = 'permit(principal, action, resource);'
const FORBID = 'forbid(principal, action, resource);'

/** A kubelet takes up to a minute and a half to bring a changed ConfigMap into its pods. */
const KUBELET_LIMIT_MS = 300_000

export const policiesOfARemoteProxy: Story = {
  title: 'policies before a remote server, from a ConfigMap and inline: what they do not permit never reaches it',
  proves: ['002-111', '002-286', '002-291'],
  async tell(world) {
    await using remote = await startFixture({ host: world.hostAddress })
    const { client, at } = world
    const cedar = { policies: ['permit(principal, action == Action::"call_tool", resource == Tool::"echo");'], entities_json: '[]' }
    const document = JSON.stringify({ version: '1.0', type: 'cedarv1', cedar })
    await client.create(configMaps, { metadata: at('rules'), data: { 'authz.json': document } })
    await world.create(REMOTE, 'ruled', { remoteUrl: remote.url, authzConfig: { type: 'configMap', configMap: { name: 'rules' } } })
    const inline = (policy: string) => ({ type: 'inline', inline: { policies: [policy] } })
    await world.create(REMOTE, 'inline', { remoteUrl: remote.url, authzConfig: inline(PERMIT) })

    const ruled = await world.reaches(REMOTE, 'ruled', 'Ready')
    for (const sdk of ['v1', 'v2'] as const) {
      await using far = await connect(sdk, await world.outside(ruled.url))
      world.expect(namesOf(await far.tools())).toEqual(['echo'])
      world.expect(await far.call('echo', { text: 'hi' })).toHaveProperty('structuredContent')
      const before = remote.stats.count('tools/call')
      await world.expect(far.call('who_am_i')).rejects.toThrow(/Unauthorized/)
      world.expect(remote.stats.count('tools/call')).toBe(before)
    }

    const open = await world.reaches(REMOTE, 'inline', 'Ready')
    await using caller = await connect('v2', await world.outside(open.url))
    const tools = namesOf(await caller.tools())
    world.expect(tools).toEqual(world.expect.arrayContaining(['echo', 'who_am_i']))
    for (const tool of ['echo', 'who_am_i']) world.expect((await caller.call(tool)).isError ?? false).toBe(false)
    await world.edit(REMOTE, 'inline', { authzConfig: inline(FORBID) })
    const isDenied = (tool: string) =>
      caller.call(tool).then(
        () => false,
        (error: unknown) => /Unauthorized/.test(String(error)),
      )
    await world.eventually('no call passes', () => isDenied('echo'), KUBELET_LIMIT_MS)
    const before = remote.stats.count('tools/call')
    for (const tool of tools) world.expect([tool, await isDenied(tool)]).toEqual([tool, true])
    world.expect(await caller.tools()).toEqual([])
    world.expect(remote.stats.count('tools/call')).toBe(before)
  },
}
