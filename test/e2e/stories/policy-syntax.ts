import { deployments } from '@thv/kube'
import { podLogs } from '@thv/kube/streams/pod-logs'
import { connect, namesOf } from './clients.ts'
import type { Story } from './story.ts'
import { SERVER, type World } from './world.ts'

const MAY = (tool: string) => `permit(principal, action == Action::"call_tool", resource == Tool::"${tool}");`

export const policySyntax: Story = {
  title:
    'what must not run open does not run: a policy with a mistake is named, policies decide what clients see and call, and an edit of them restarts nothing',
  proves: ['002-070', '002-066'],
  async tell(world) {
    const { client, at } = world
    const withPolicy = (...policies: string[]) => ({
      image: world.images.fixture,
      transport: 'streamable-http',
      audit: { enabled: true },
      authzConfig: { type: 'inline', inline: { policies } },
    })
    await world.create(SERVER, 'guarded', withPolicy('permit(principal, action, resource'))
    // The packaged operator has the parser of policies with it.
    await world.hasReason(SERVER, 'guarded', { condition: 'ConfigurationValid', reason: 'AuthzPolicySyntaxInvalid' })
    await world.reaches(SERVER, 'guarded', 'Failed')
    world.expect(await client.tryGet(deployments, at('guarded'))).toBeUndefined()

    await world.edit(SERVER, 'guarded', withPolicy(MAY('echo')))
    const { url } = await world.reaches(SERVER, 'guarded', 'Running')
    for (const sdk of ['v1', 'v2'] as const) {
      await using guarded = await connect(sdk, await world.outside(url))
      world.expect(namesOf(await guarded.tools())).toEqual(['echo'])
      world.expect(await guarded.call('echo', { text: 'hi' })).toHaveProperty('structuredContent')
      await world.expect(guarded.call('who_am_i')).rejects.toThrow(/Unauthorized/)
    }

    await editsReachTheProxy(world, url, async (...policies) => void (await world.edit(SERVER, 'guarded', withPolicy(...policies))))
    await candidatesAreTried(world, url)

    // An open server whose new guard cannot be resolved is stopped.
    await world.edit(SERVER, 'guarded', { authzConfig: null })
    await world.reaches(SERVER, 'guarded', 'Running')
    await world.edit(SERVER, 'guarded', withPolicy('permit(principal, action, resource'))
    await world.reaches(SERVER, 'guarded', 'Failed')
    await world.eventually('no proxy is left', async () => (await world.proxyPods('guarded')).length === 0)
  },
}

/** A kubelet takes up to a minute and a half to bring a changed ConfigMap into its pods. */
const KUBELET_LIMIT_MS = 300_000

/** A client that calls all the time sees the new policies, and none of its calls fails meanwhile. */
async function editsReachTheProxy(world: World, url: string | undefined, edit: (...policies: string[]) => Promise<void>): Promise<void> {
  const processes = async () =>
    (await world.proxyPods('guarded')).map(({ metadata, status }) => [
      metadata.uid,
      status?.containerStatuses?.map(({ restartCount }) => restartCount),
    ])
  const hash = async () => (await world.client.get(SERVER, world.at('guarded'))).status?.authzConfigHash
  const [before, hashBefore] = [await processes(), await hash()]
  await using client = await connect('v2', await world.outside(url))
  const failed: unknown[] = []
  let calls = 0
  const until = async (what: string, isReached: () => Promise<boolean>) =>
    await world.eventually(
      what,
      async () => {
        calls++
        await client.call('echo', { text: 'hi' }).catch((error: unknown) => failed.push(error))
        return await isReached()
      },
      KUBELET_LIMIT_MS,
    )
  const mayCall = (tool: string) =>
    client.call(tool).then(
      () => true,
      () => false,
    )
  world.expect(await mayCall('who_am_i')).toBe(false)
  await edit(MAY('echo'), MAY('who_am_i'))
  await until('a permit that was added permits', () => mayCall('who_am_i'))
  world.expect(namesOf(await client.tools()).toSorted()).toEqual(['echo', 'who_am_i'])
  await edit(MAY('echo'))
  await until('a permit that was removed permits nothing', async () => !(await mayCall('who_am_i')))
  world.expect(calls).toBeGreaterThan(1)
  world.expect(failed).toEqual([])
  world.expect(await hash()).toBe(hashBefore)
  world.expect(await processes()).toEqual(before)
}

/** Policies that are only tried change no answer; the audit events show where they decide otherwise. */
async function candidatesAreTried(world: World, url: string | undefined): Promise<void> {
  const candidate = { type: 'inline', inline: { policies: [`@id("next") ${MAY('who_am_i')}`] } }
  await world.edit(SERVER, 'guarded', { authzConfig: { candidate } })
  await using client = await connect('v2', await world.outside(url))
  const [pod] = await world.proxyPods('guarded')
  await world.eventually(
    'an audit event shows that the candidate would permit a call',
    async () => {
      await world.expect(client.call('who_am_i')).rejects.toThrow(/Unauthorized/)
      let text = ''
      const decoder = new TextDecoder()
      for await (const chunk of podLogs(world.client, { namespace: world.namespace, pod: pod?.metadata.name ?? '' }))
        text += decoder.decode(chunk, { stream: true })
      return text.split('\n').some((line) => line.includes('"candidate":{"decision":"allow","policies":["next"]'))
    },
    KUBELET_LIMIT_MS,
  )
  world.expect(namesOf(await client.tools())).toEqual(['echo'])
  world.expect(await client.call('echo', { text: 'hi' })).toHaveProperty('structuredContent')
}
