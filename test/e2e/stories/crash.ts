import { getCondition, pods } from '@thv/kube'
import { ask, connect, whoAmI } from './clients.ts'
import { statusHistory } from './status-history.ts'
import type { Story } from './story.ts'
import { SERVER, type World } from './world.ts'

export const crash: Story = {
  title: 'a server that crashes and pods that are deleted come back, and the status tells it meanwhile',
  proves: ['002-002', '002-068', '002-069', '002-070'],
  async tell(world) {
    const { fixture } = world.images
    await using first = await statusHistory(world, SERVER, 'piped')
    await world.create(SERVER, 'piped', { image: fixture })
    await world.create(SERVER, 'web', { image: fixture, transport: 'streamable-http' })
    await world.create(SERVER, 'broken', { image: fixture, args: ['--no-such-flag'] })
    await world.eventually('the status of piped has told what it waits for', async () =>
      first.seen.some(({ conditions }) => {
        const { reason, message = '' } = getCondition(conditions, 'Ready') ?? {}
        return reason === 'NotReady' && /^waiting for/i.test(message)
      }),
    )
    await Promise.all(['piped', 'web'].map((name) => recovers(world, name)))

    const { url, message } = await world
      .hasReason(SERVER, 'broken', { condition: 'Ready', reason: 'CrashLoopBackOff' })
      .then(async () => await world.reaches(SERVER, 'broken', 'Failed'))
    world.expect(message).toMatch(/Container mcp .*exit code 2/)
    await world.edit(SERVER, 'broken', { args: [] })
    await world.reaches(SERVER, 'broken', 'Running')
    world.expect((await ask(await world.outside(url), 'echo', { message: 'mended' })).structuredContent).toEqual({
      arguments: { message: 'mended' },
    })
  },
}

async function recovers(world: World, name: string): Promise<void> {
  const url = await world.outside((await world.reaches(SERVER, name, 'Running')).url)
  let instance = await instanceAt(url)
  const becomesAnother = async (what: string) => {
    instance = await world.eventually(what, async () => {
      const now = await instanceAt(url)
      return now !== instance && now
    })
    await world.reaches(SERVER, name, 'Running')
  }

  // The process ends in the middle of a call: its caller gets an error in good time, the next one an answer.
  await world.expect(ask(url, 'crash', { code: 3 })).rejects.toThrow()
  await becomesAnother(`the process of ${name} is another one`)
  // The process may answer before its node has told of it.
  const restarts = await world.eventually(`the restart of ${name} is counted`, async () => {
    const { status } = await world.client.get(pods, world.at(`${name}-0`))
    return status?.containerStatuses?.[0]?.restartCount || undefined
  })
  world.expect(restarts).toBe(1)

  await using away = await statusHistory(world, SERVER, name)
  await world.client.delete(pods, world.at(`${name}-0`))
  await world.eventually(`the status of ${name} has told that its server is away`, async () =>
    away.seen.some(({ phase, message }) => phase === 'Pending' && message),
  )
  await becomesAnother(`the server pod of ${name} is another one`)

  const [proxy] = await world.proxyPods(name)
  await world.client.delete(pods, world.at(proxy?.metadata.name ?? ''))
  await world.eventually(`the proxy of ${name} is another one and ready`, async () => {
    const [now, ...more] = await world.proxyPods(name)
    return more.length === 0 && now?.metadata.uid !== proxy?.metadata.uid && now?.status?.containerStatuses?.[0]?.ready === true
  })
  await world.reaches(SERVER, name, 'Running')
  await world.eventually(`${name} answers through the new proxy`, async () => (await instanceAt(url)) !== undefined)
}

async function instanceAt(url: string): Promise<string> {
  await using client = await connect('v1', url)
  return (await whoAmI(client)).instance
}
