import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { fixtureServer, pipeRuntime, scriptedServer } from './testing/pipe-runtime.ts'
import { startStdioRunner } from './testing/stdio-runner.ts'
import { type Incoming, type LegacyClient, MODERN, modern, openLegacy, textOf } from './testing/wire-client.ts'

describe('clients of one stdio server', () => {
  it('never see the answers of each other: 50 sessions with the same ids at once', async () => {
    const runtime = pipeRuntime(fixtureServer({ era: 'legacy' }))
    await using runner = await startStdioRunner({ runtime })
    const clients = await Promise.all(Array.from({ length: 50 }, () => openLegacy(runner.url)))
    const streams = await Promise.all(clients.map((client) => client.stream()))
    for (let round = 0; round < 3; round++) {
      const answers = await Promise.all(
        clients.map((client, index) => client.tool('echo', { mine: `${index}-${round}` }, { id: 1, meta: { progressToken: 1 } })),
      )
      expect(answers.map((answer) => [answer.id, textOf(answer)])).toEqual(clients.map((_, index) => [1, `{"mine":"${index}-${round}"}`]))
    }
    expect(streams.flatMap(({ messages }) => messages)).toEqual([])
    expect(runtime.started).toHaveLength(1)
  })

  it('never see anything of each other, whatever a server says in whatever order', async () => {
    const scenario = fc.record({
      /** Which sessions can be asked. */
      sessions: fc.array(fc.boolean(), { minLength: 2, maxLength: 5 }),
      /** The effect of each call before its answer, and its client. */
      calls: fc.array(
        fc.record({
          session: fc.nat(4),
          says: fc.array(fc.constantFrom('progress', 'log', 'question', 'updated', 'vendor'), { maxLength: 4 }),
          cancels: fc.boolean(),
        }),
        { minLength: 1, maxLength: 12 },
      ),
      isolation: fc.constantFrom('auto' as const, 'shared' as const),
      order: fc.infiniteStream(fc.nat(1_000)),
      withModern: fc.boolean(),
    })
    await fc.assert(
      fc.asyncProperty(scenario, async ({ sessions, calls, isolation, order, withModern }) => {
        const runtime = pipeRuntime(chattyServer(() => order.next().value ?? 0))
        await using runner = await startStdioRunner({ runtime, config: { isolation, maxProcesses: 2 } })
        const secretOf = (index: number) => `secret-${index}-of-one-client`
        const clients: LegacyClient[] = []
        for (const canBeAsked of sessions) {
          clients.push(await openLegacy(runner.url, { capabilities: canBeAsked ? { sampling: {} } : {} }))
        }
        const heard: Incoming[][] = await Promise.all(clients.map(async (client) => [await client.stream()]))
        await Promise.all(clients.map((client, index) => client.call('resources/subscribe', { uri: secretOf(index) }, { id: 'sub' })))
        const working = calls.map(async ({ session, says, cancels }, at) => {
          const index = session % clients.length
          const client = clients[index]
          if (client === undefined) return
          const call = client.request('tools/call', { says, secret: secretOf(index) }, { id: at, meta: { progressToken: 'same' } })
          if (cancels) await client.notify('notifications/cancelled', { requestId: at })
          const incoming = await call
          heard[index]?.push(incoming)
          await incoming.all()
        })
        if (withModern) {
          const meta = { progressToken: 'same', 'io.modelcontextprotocol/logLevel': 'debug' }
          const secret = 'secret-of-the-modern'
          const incoming = await modern(runner.url, 'tools/call', { name: 'x', says: ['progress', 'log'], secret }, { id: 0, meta })
          for (const message of await incoming.all()) expect(JSON.stringify(message)).toMatch(/secret-of-the-modern/)
        }
        await Promise.all(working)
        heard.forEach((incoming, index) => {
          for (const message of incoming.flatMap(({ messages }) => messages)) {
            const foreign = clients.map((_, other) => secretOf(other)).filter((_, other) => other !== index)
            const text = JSON.stringify(message)
            expect(foreign.filter((secret) => text.includes(secret))).toEqual([])
            expect(text).not.toContain('secret-of-the-modern')
          }
        })
        // A client that did not cancel has an answer, and it is its own.
        calls.forEach(({ session, cancels }, at) => {
          const index = session % clients.length
          const answers = (heard[index] ?? [])
            .flatMap(({ messages }) => messages)
            .filter(({ id, method }) => id === at && method === undefined)
          if (!cancels) expect(answers).toMatchObject([{ result: { secret: secretOf(index) } }])
        })
      }),
      { numRuns: 15 },
    )
  })
})

/** Speaks for each call as told, then answers it; what comes next is chosen at random among all calls. */
function chattyServer(random: () => number) {
  return scriptedServer((message, send) => {
    const { id, method, params = {} } = message
    if (method === 'server/discover') {
      send({ jsonrpc: '2.0', id, result: { resultType: 'complete', supportedVersions: [MODERN], capabilities: {} } })
    } else if (method === 'resources/subscribe' || method === 'tools/list') send({ jsonrpc: '2.0', id, result: { tools: [] } })
    if (method !== 'tools/call') return
    const secret = String(params['secret'])
    const steps = [...(params['says'] as string[])].map((says) => () => send(saying(says, secret, params)))
    steps.push(() => send({ jsonrpc: '2.0', id, result: { resultType: 'complete', secret } }))
    const next = () => {
      steps.shift()?.()
      if (steps.length > 0) setTimeout(next, random() % 8)
    }
    setTimeout(next, random() % 8)
  })
}

let questions = 0

function saying(what: string, secret: string, params: Record<string, unknown>): object {
  const { progressToken } = (params['_meta'] ?? {}) as { progressToken?: string }
  switch (what) {
    case 'progress':
      return { jsonrpc: '2.0', method: 'notifications/progress', params: { progressToken, progress: 1, message: secret } }
    case 'log':
      return { jsonrpc: '2.0', method: 'notifications/message', params: { level: 'info', data: secret } }
    case 'question':
      return { jsonrpc: '2.0', id: ++questions, method: 'sampling/createMessage', params: { messages: [secret] } }
    case 'updated':
      return { jsonrpc: '2.0', method: 'notifications/resources/updated', params: { uri: secret } }
    default:
      return { jsonrpc: '2.0', method: 'notifications/vendor/thing', params: { secret } }
  }
}
