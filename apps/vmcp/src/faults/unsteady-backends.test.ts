import { readUntil, WireClient } from '@thv/gateway/testing/wire-client'
import { startFixture } from '@thv/testkit/mcp/fixture'
import { describe, expect, it } from 'vitest'
import { documentOf, startLive } from '../testing/live-vmcp.ts'
import { answer, type ScriptedCall, type ScriptedOptions, startScripted } from '../testing/scripted-backend.ts'
import { startTestVmcp } from '../testing/test-vmcp.ts'

const ERAS = ['legacy', 'modern'] as const
type Era = (typeof ERAS)[number]
const COMBINATIONS = ERAS.flatMap((client) => ERAS.map((backend) => ({ client, backend })))
const POLL = { timeout: 20_000, interval: 20 }

/** Calls of one client; in the legacy era its session is open. Ids of all clients begin at the same number. */
async function connect(url: string, era: Era) {
  const client = new WireClient(url)
  if (era === 'legacy') await client.initialize()
  return {
    client,
    call: async (name: string, text: string) =>
      (await (era === 'legacy' ? client.call(name, { text }) : client.modernCall(name, { text }))).messages.at(-1),
    names: async () => {
      const listed = await (era === 'legacy' ? client.request('tools/list') : client.modern('tools/list'))
      return listed.messages.at(-1).result.tools.map(({ name }: { name: string }) => name) as string[]
    },
  }
}

const textOf = ({ params }: ScriptedCall) => String((params['arguments'] as { text?: string } | undefined)?.text)
const said = (text: string) => ({ result: { content: [{ type: 'text', text }] } })
const tools = (...names: string[]) => ({ tools: names.map((name) => ({ name, inputSchema: { type: 'object' } })) })

describe('a slow backend', () => {
  it.each(COMBINATIONS)('delays no other call, and its late answer reaches no client: $client client, $backend backend', async (eras) => {
    const held: (() => void)[] = []
    const call: ScriptedOptions['call'] = (each, response) => {
      const send = () => answer(response, each, textOf(each))
      if (each.params['name'] === 'slow') held.push(send)
      else send()
    }
    await using backend = await startScripted({ era: eras.backend, list: () => tools('slow', 'work'), call })
    const config = { operational: { timeouts: { perTool: { slow: '1s' } } } }
    await using vmcp = await startTestVmcp({ backends: { one: backend.url }, config })
    const [ada, bob] = [await connect(vmcp.url, eras.client), await connect(vmcp.url, eras.client)]
    // On a busy machine the handshake with the backend would take a good part of the time.
    expect(await ada.call('work', 'first')).toMatchObject(said('first'))
    const slow = ada.call('slow', 'of ada')
    for (let i = 0; i < 5; i++) expect(await bob.call('work', `of bob ${i}`)).toMatchObject(said(`of bob ${i}`))
    expect(await slow).toMatchObject({ error: { code: 504, data: { backend: 'one', mayHaveRun: true } } })
    for (const send of held) send()
    for (const client of [ada, bob]) expect(await client.call('work', 'next')).toMatchObject(said('next'))
    expect(backend.calls.filter(({ params }) => params['name'] === 'slow')).toHaveLength(1)
    expect(vmcp.offer.members.map(({ health }) => health.status)).toEqual(['healthy'])
  })

  it.each(COMBINATIONS)('within its limit answers its own call, after many others: $client client, $backend backend', async (eras) => {
    let release = () => {}
    const call: ScriptedOptions['call'] = (each, response) => {
      const send = () => answer(response, each, textOf(each))
      if (textOf(each) === 'slow') release = send
      else send()
    }
    await using backend = await startScripted({ era: eras.backend, call })
    await using vmcp = await startTestVmcp({ backends: { one: backend.url } })
    const [ada, bob] = [await connect(vmcp.url, eras.client), await connect(vmcp.url, eras.client)]
    const slow = ada.call('work', 'slow')
    await expect.poll(() => backend.calls.length, POLL).toBe(1)
    for (let i = 0; i < 20; i++) expect(await bob.call('work', `quick ${i}`)).toMatchObject(said(`quick ${i}`))
    release()
    expect(await slow).toMatchObject(said('slow'))
  })

  it('to list is left out at first, and reaches sessions that are open when it answers', async () => {
    const listed = Promise.withResolvers<object>()
    await using quick = await startFixture({ only: ['echo'] })
    await using slow = await startScripted({ era: 'legacy', list: () => listed.promise, call: (call, response) => answer(response, call) })
    await using vmcp = await startTestVmcp({ backends: { quick: quick.url, slow: slow.url }, isAttempted: false })
    const { client, call, names } = await connect(vmcp.url, 'legacy')
    await expect.poll(names, POLL).toEqual(['echo'])
    expect(await call('echo', 'hi')).toHaveProperty('result')
    expect(await call('work', 'too early')).toMatchObject({ error: { code: -32602 } })
    const stream = await client.get()
    listed.resolve(tools('work'))
    await readUntil(stream, 'notifications/tools/list_changed')
    expect(await names()).toEqual(['echo', 'work'])
    expect(await call('work', '')).toMatchObject(said('done'))
  })
})

describe('a backend that flaps', () => {
  it.each(COMBINATIONS)('keeps its place in the lists, and answers whenever it is up: $client client, $backend backend', async (eras) => {
    await using backend = await startScripted({ era: eras.backend, call: (each, response) => answer(response, each, textOf(each)) })
    await using steady = await startScripted({
      era: eras.backend,
      list: () => tools('other'),
      call: (each, response) => answer(response, each, textOf(each)),
    })
    await using vmcp = await startTestVmcp({ backends: { one: backend.url, two: steady.url } })
    const clients = [await connect(vmcp.url, eras.client), await connect(vmcp.url, eras.client)]
    let changes = 0
    vmcp.offer.view.onChange(() => changes++)
    for (let round = 0; round < 20; round++) {
      backend.isDown = round % 2 === 1
      const texts = clients.map((_, i) => `${round}.${i}`)
      const answers = await Promise.all(clients.map(({ call }, i) => call('work', texts[i] ?? '')))
      for (const [i, text] of texts.entries())
        expect(answers[i]).toMatchObject(backend.isDown ? { error: { data: { backend: 'one' } } } : said(text))
      for (const { call, names } of clients) {
        expect(await call('other', `other ${round}`)).toMatchObject(said(`other ${round}`))
        expect(await names()).toEqual(['other', 'work'])
      }
    }
    expect(changes).toBe(0)
    // Each call once, and what was down for a moment was not asked again in a storm: a connection needs three requests at most.
    const { requests } = backend.backend
    expect(backend.calls).toHaveLength(20)
    expect(requests.length).toBeLessThan(20 * clients.length * 6)
    backend.isDown = false
    expect(await clients[0]?.call('work', 'at last')).toMatchObject(said('at last'))
    expect(vmcp.offer.members.map(({ health }) => health.status)).toEqual(['healthy', 'healthy'])
  })
})

describe('two backends', () => {
  const startNamed = (name: string, held: (() => void)[] = []) =>
    startScripted({
      era: 'legacy',
      call: (each, response) => {
        const send = () => answer(response, each, `${name}: ${textOf(each)}`)
        if (textOf(each) === 'held') held.push(send)
        else send()
      },
    })

  it('that swap their addresses: calls under way end where they began, and each later one goes to the new place', async () => {
    const held: (() => void)[] = []
    await using a = await startNamed('a', held)
    await using b = await startNamed('b')
    const swapped = (first: string, second: string) =>
      documentOf([
        { name: 'one', url: first },
        { name: 'two', url: second },
      ])
    await using live = await startLive(swapped(a.url, b.url))
    const clients = await Promise.all([...ERAS, ...ERAS].map((era) => connect(live.url, era)))
    const waiting = clients.map(({ call }) => call('one_work', 'held'))
    await expect.poll(() => held.length, POLL).toBe(clients.length)
    const seen = clients.map((): string[] => [])
    const isOver = () => seen.every((each) => each.at(-1)?.startsWith('b: ') === true)
    const loops = clients.map(async ({ call }, i) => {
      for (let n = 0; !isOver() && n < 5_000; n++) {
        const text = `${i}.${n}`
        const answered = await call('one_work', text)
        expect(answered).toHaveProperty('result')
        const [{ text: got }] = answered.result.content as [{ text: string }]
        expect(['a', 'b'].map((name) => `${name}: ${text}`)).toContain(got)
        seen[i]?.push(got)
      }
    })
    live.write(swapped(b.url, a.url))
    await Promise.all(loops)
    // Once a client was served by the other one, it stays there.
    for (const each of seen) expect(each.map((text) => text[0]).join('')).toMatch(/^a*b+$/)
    for (const send of held) send()
    for (const ended of waiting) expect(await ended).toMatchObject(said('a: held'))
    for (const { call, names } of clients) {
      expect(await call('two_work', 'now')).toMatchObject(said('a: now'))
      expect(await names()).toEqual(['one_work', 'two_work'])
    }
  })

  it('with each other’s names: the prefixed name of one is the bare name of the other, and both stay apart', async () => {
    const named = (text: string, ...names: string[]) =>
      startScripted({ era: 'legacy', list: () => tools(...names), call: (each, response) => answer(response, each, text) })
    await using a = await named('from a', 'b_work', 'work')
    await using b = await named('from b', 'a_work', 'work')
    for (const conflictResolution of ['prefix', 'prefixOnConflict']) {
      await using vmcp = await startTestVmcp({ backends: { a: a.url, b: b.url }, config: { aggregation: { conflictResolution } } })
      const { call, names } = await connect(vmcp.url, 'modern')
      const offered = await names()
      expect(new Set(offered).size).toBe(offered.length)
      for (const name of offered) {
        const { backend } = vmcp.offer.view.now.tools.get(name) ?? { backend: '' }
        expect(await call(name, '')).toMatchObject(said(`from ${backend}`))
      }
      // None is lost without a word.
      expect(offered.length + vmcp.offer.view.now.conflicts.filter(({ outcome }) => outcome === 'lost').length).toBe(4)
    }
  })
})

describe('a backend whose era turns under connected clients', () => {
  it.each([
    { first: 'legacy', second: 'modern' },
    { first: 'modern', second: 'legacy' },
  ] as const)('is followed from $first to $second and back, and no answer reaches another client', async ({ first, second }) => {
    await using fixture = await startFixture({ era: first, only: ['echo', 'set_tool'] })
    await using vmcp = await startTestVmcp({ backends: { a: fixture.url } })
    const clients = await Promise.all([...ERAS, ...ERAS].map((era) => connect(vmcp.url, era)))
    const failures: unknown[] = []
    const isOwn = async ({ call }: (typeof clients)[number], text: string) => {
      const message = await call('echo', text)
      if (message.result === undefined) failures.push(message.error)
      else expect(JSON.stringify(message.result)).toContain(text)
      return message.result !== undefined
    }
    for (const era of [first, second, first, second]) {
      fixture.admin.setEra(era)
      fixture.admin.forgetSessions()
      fixture.admin.dropStreams()
      await Promise.all(clients.map((client, i) => expect.poll(() => isOwn(client, `${era} ${i} ${failures.length}`), POLL).toBe(true)))
      expect(await clients[1]?.names()).toEqual(['echo', 'set_tool'])
    }
    // An error on the way says whose it is; nothing of the address gets out.
    for (const error of failures) expect(error).toMatchObject({ code: expect.any(Number), data: { backend: 'a' } })
    expect(JSON.stringify(failures)).not.toContain('127.0.0.1')
    // Changes are heard of in the era that it speaks now.
    await clients[0]?.client.call('set_tool', { name: 'added', present: true })
    await expect.poll(async () => await clients[1]?.names(), POLL).toContain('added')
  })
})
