import { expect } from 'vitest'
import { failureOf, PATIENT, type Scenario, withPeer } from './scenario.ts'
import { connectSse, openTransport, postRaw, type SsePeer } from './sse-peer.ts'

/** The life of a session, and who may use it. */
export const SESSION_SCENARIOS: readonly Scenario[] = [
  {
    name: 'two clients at once never see each other’s answers, progress or logs',
    async run({ url }) {
      await using one = await connectSse(url, { name: 'one' })
      await using two = await connectSse(url, { name: 'two' })
      const calls = Array.from({ length: 40 }, (_, at) => at)
      const work = async (peer: SsePeer, name: string) => {
        const answers = await Promise.all(calls.map(async (at) => (await peer.json('echo', { text: `${name} ${at}` }))['text']))
        await peer.client.callTool({ name: 'test_tool_with_progress' }, undefined, { onprogress: () => undefined })
        return { answers, progress: peer.notified('notifications/progress').map(({ progress }) => progress) }
      }
      const results = await Promise.all([work(one, 'one'), work(two, 'two')])
      // The SDK counts from 0 in each client, so all ids are used twice.
      expect(results.map(({ answers }) => answers)).toEqual(['one', 'two'].map((name) => calls.map((at) => `${name} ${at}`)))
      expect(results.map(({ progress }) => progress)).toEqual([
        [0, 50, 100],
        [0, 50, 100],
      ])
      for (const peer of [one, two]) {
        const ids = peer.received.flatMap((message) => ('result' in message ? [message.id] : []))
        expect(ids).toHaveLength(1 + calls.length + 1)
        expect(new Set(ids).size).toBe(ids.length)
        expect(peer.notified('notifications/progress')).toHaveLength(3)
      }
      await one.client.setLoggingLevel('info')
      await one.text('test_tool_with_logging')
      expect(one.notified('notifications/message')).toHaveLength(3)
      await two.client.ping()
      expect(two.notified('notifications/message')).toEqual([])
    },
  },
  {
    name: 'a client that leaves takes its session with it; one that comes again gets a new one',
    async run({ url }) {
      const first = await connectSse(url)
      expect(await first.text('greet')).toBe('Hello, World!')
      const { endpoint } = first
      await first.client.close()
      await expect.poll(async () => (await postRaw(endpoint, { id: 9, method: 'ping' })).status, PATIENT).toBe(404)
      await using second = await connectSse(url)
      expect(await second.text('greet', { name: 'again' })).toBe('Hello, again!')
      expect(second.endpoint.searchParams.get('sessionId')).not.toBe(endpoint.searchParams.get('sessionId'))
    },
  },
  {
    name: 'every kind of message to a dead session is 404, with an error that has the id',
    async run({ url }) {
      const peer = await connectSse(url)
      await peer.client.ping()
      const { endpoint } = peer
      await peer.client.close()
      await expect.poll(async () => (await postRaw(endpoint, { id: 9, method: 'ping' })).status, PATIENT).toBe(404)
      const { status, body } = await postRaw(endpoint, { id: 'late', method: 'tools/call', params: { name: 'greet' } })
      expect({ status, body: JSON.parse(body) }).toMatchObject({ status: 404, body: { jsonrpc: '2.0', id: 'late', error: {} } })
      expect((await postRaw(endpoint, { method: 'notifications/initialized' })).status).toBe(404)
      expect((await postRaw(endpoint, { id: 1, result: {} })).status).toBe(404)
    },
  },
  withPeer('a wrong session is 404, none is 400, and neither reaches the server', async (peer, { url }) => {
    const before = peer.received.length
    const call = { id: 'x', method: 'tools/call', params: { name: 'greet' } }
    const own = peer.endpoint.searchParams.get('sessionId') ?? ''
    for (const wrong of ['nope', `${own.slice(0, -1)}${own.endsWith('A') ? 'B' : 'A'}`, `${own}x`, '', '../x', '%00']) {
      expect({ wrong, status: (await postRaw(new URL(`/messages?sessionId=${wrong}`, url), call)).status }).toEqual({ wrong, status: 404 })
    }
    expect((await postRaw(new URL('/messages', url), call)).status).toBe(400)
    await peer.client.ping()
    expect(peer.received).toHaveLength(before + 1)
  }),
  {
    name: 'without the endpoint event nothing can be sent, and before the handshake nothing but ping is answered',
    async run({ url }) {
      expect((await postRaw(new URL('/messages', url), { id: 1, method: 'initialize' })).status).toBe(400)
      const { transport, received } = openTransport(url)
      await expect(transport.send({ jsonrpc: '2.0', id: 1, method: 'ping' })).rejects.toThrow('Not connected')
      await transport.start()
      try {
        await transport.send({ jsonrpc: '2.0', id: 2, method: 'tools/list' })
        await transport.send({ jsonrpc: '2.0', id: 3, method: 'ping' })
        const answers = () => received.toSorted((a, b) => Number('id' in a && a.id) - Number('id' in b && b.id))
        await expect.poll(answers, PATIENT).toMatchObject([
          { id: 2, error: { code: expect.any(Number) } },
          { id: 3, result: {} },
        ])
      } finally {
        await transport.close()
      }
    },
  },
  {
    name: 'other methods and the other transport are refused',
    async run({ url }) {
      const refused = async (method: string, path: string) => {
        const response = await fetch(new URL(path, url), { method })
        await response.body?.cancel()
        return [method, path, response.status, response.headers.get('allow')]
      }
      expect(await refused('POST', '/sse')).toEqual(['POST', '/sse', 405, 'GET'])
      expect(await refused('DELETE', '/sse')).toEqual(['DELETE', '/sse', 405, 'GET'])
      expect(await refused('GET', '/messages')).toEqual(['GET', '/messages', 405, 'POST'])
      expect(await refused('DELETE', '/messages')).toEqual(['DELETE', '/messages', 405, 'POST'])
      expect((await refused('POST', '/mcp'))[2]).toBe(404)
    },
  },
  {
    name: 'a page of another site gets no stream',
    async run({ url }) {
      const response = await fetch(url, { headers: { accept: 'text/event-stream', origin: 'https://evil.example' } })
      await response.body?.cancel()
      expect(response.status).toBe(403)
    },
  },
  {
    name: 'a server that dies answers the calls under way with an error, and serves who comes again',
    async run({ url }) {
      const peer = await connectSse(url)
      const failure = await failureOf(peer.client.callTool({ name: 'crash' }))
      expect(failure).toMatchObject({ code: 5021, data: { mayHaveRun: true, retryable: true } })
      await peer.client.close()
      const again = async () => {
        await using next = await connectSse(url)
        return await next.text('greet')
      }
      await expect.poll(() => again().catch(String), PATIENT).toBe('Hello, World!')
    },
  },
]
