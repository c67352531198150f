import { connect as connectSocket, type Socket } from 'node:net'
import { WireClient } from '@thv/gateway/testing/wire-client'
import { SseDecoder } from '@thv/mcp/sse-decoder'
import { type Fixture, startFixture } from '@thv/testkit/mcp/fixture'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { callModern } from '../testing/call-modern.ts'
import { startTestVmcp, type TestVmcp } from '../testing/test-vmcp.ts'

const SESSIONS = 1_000
const AT_A_TIME = 100

describe('clients of a virtual server', () => {
  let legacy: Fixture
  let modern: Fixture
  let vmcp: TestVmcp

  beforeAll(async () => {
    legacy = await startFixture({ era: 'legacy' })
    modern = await startFixture({ era: 'modern', only: ['echo', 'big_result'] })
    vmcp = await startTestVmcp({ backends: { a: legacy.url, b: modern.url }, config: { aggregation: { conflictResolution: 'prefix' } } })
  })
  afterAll(async () => {
    for (const each of [vmcp, legacy, modern]) await each?.[Symbol.asyncDispose]()
  })

  const echo = async (client: WireClient) => (await client.call('b_echo', { text: 'alive' })).status

  /** A call whose question stands on the stream of the client; the call waits for the answer. */
  async function asked() {
    const client = new WireClient(vmcp.url)
    await client.initialize({ elicitation: {} })
    const post = await fetch(vmcp.url, {
      method: 'POST',
      headers: {
        'content-type': 'application/json',
        accept: 'application/json, text/event-stream',
        'mcp-session-id': client.sessionId ?? '',
      },
      body: JSON.stringify({
        ...{ jsonrpc: '2.0', id: 'call', method: 'tools/call' },
        params: { name: 'a_test_elicitation', arguments: { message: 'Who?' } },
      }),
    })
    const question = Promise.withResolvers<string>()
    const decoder = new SseDecoder(({ data }) => {
      if (data.includes('elicitation/create')) question.resolve((JSON.parse(data) as { id: string }).id)
    })
    const read = async () => {
      const chunks: Uint8Array[] = []
      for await (const chunk of post.body ?? []) {
        decoder.push(Buffer.from(chunk))
        chunks.push(chunk)
      }
      return Buffer.concat(chunks).toString('utf8')
    }
    const answered = read()
    return { client, id: await question.promise, answered }
  }

  it('cannot answer the questions that others are asked', async () => {
    const [ada, eve] = [await asked(), await asked()]
    expect(ada.id).not.toBe(eve.id)
    const answer = (id: string, name: string) => ({
      jsonrpc: '2.0',
      id,
      result: { action: 'accept', content: { username: name, email: name } },
    })
    const stranger = new WireClient(vmcp.url)
    await stranger.initialize({ elicitation: {} })
    for (const client of [eve.client, stranger]) expect((await client.post(answer(ada.id, 'forged@x'))).status).toBe(202)
    // The right answer is still waited for.
    expect((await ada.client.post(answer(ada.id, 'ada@x'))).status).toBe(202)
    expect(await ada.answered).toContain('ada@x')
    expect((await eve.client.post(answer(eve.id, 'eve@x'))).status).toBe(202)
    const text = await eve.answered
    expect(text).toContain('eve@x')
    expect(text).not.toContain('forged')
  })

  it('that use ids of others for calls and cancellations reach only their own', async () => {
    const [one, two] = [new WireClient(vmcp.url), new WireClient(vmcp.url)]
    await Promise.all([one.initialize(), two.initialize()])
    const message = { jsonrpc: '2.0', id: 'same', method: 'tools/call', params: { name: 'a_hang', arguments: {} } }
    const before = legacy.stats.count('notifications/cancelled')
    const hanging = new AbortController()
    const waits = one.post(message, { signal: hanging.signal }).then(
      () => 'answered',
      () => 'hung up',
    )
    await expect.poll(() => JSON.stringify(legacy.stats.received)).toContain('"hang"')
    await two.notify('notifications/cancelled', { requestId: 'same' })
    expect((await two.post({ ...message, params: { name: 'b_echo', arguments: { text: 'mine' } } })).text).toContain('mine')
    expect(legacy.stats.count('notifications/cancelled')).toBe(before)
    await one.notify('notifications/cancelled', { requestId: 'same' })
    await expect.poll(() => legacy.stats.count('notifications/cancelled')).toBe(before + 1)
    hanging.abort()
    await waits
  })

  it('may open 1,000 sessions at once: no backend sees one before it is used, and all of them end', async () => {
    const before = legacy.stats.count('initialize')
    const clients = Array.from({ length: SESSIONS }, () => new WireClient(vmcp.url))
    const params = { protocolVersion: '2025-11-25', capabilities: {}, clientInfo: { name: 'x', version: '1' } }
    const open = async (client: WireClient) => {
      const { status, headers } = await client.request('initialize', params)
      client.sessionId = headers.get('mcp-session-id') ?? undefined
      return status
    }
    expect(await inTurns(clients, open)).toEqual(new Set([200]))
    expect(new Set(clients.map(({ sessionId }) => sessionId)).size).toBe(SESSIONS)
    expect(legacy.stats.count('initialize')).toBe(before)
    expect(await echo(clients[500] as WireClient)).toBe(200)
    expect(await inTurns(clients, async (client) => (await client.delete()).status)).toEqual(new Set([204]))
    expect(await echo(clients[500] as WireClient)).toBe(404)
  })

  it('that do not read their answers hold up no other, and leave nothing behind', async () => {
    const body = (id: number) =>
      JSON.stringify({ jsonrpc: '2.0', id, method: 'tools/call', params: { name: 'b_big_result', arguments: { bytes: 4 << 20 } } })
    const client = new WireClient(vmcp.url)
    await client.initialize()
    const sockets = await Promise.all(Array.from({ length: 20 }, (_, i) => silent(vmcp.url, body(i), client.sessionId ?? '')))
    for (let i = 0; i < 5; i++) expect(await echo(client)).toBe(200)
    for (const socket of sockets) socket.destroy()
    const inFlight = async () => /^toolhive_mcp_requests_in_flight\S* (\d+)$/m.exec(await (await fetch(`${vmcp.base}/metrics`)).text())?.[1]
    await expect.poll(inFlight, { timeout: 20_000 }).toBe('0')
    expect(await echo(client)).toBe(200)
  })

  it('that go away while their call is parked hold up no other, and its session at the backend ends with the server', async () => {
    await using own = await startFixture({ era: 'legacy' })
    const parking = await startTestVmcp({ backends: { a: own.url } })
    const { result } = await callModern(parking.url, 'test_elicitation', { arguments: { message: 'Who?' } })
    expect(result?.resultType).toBe('input_required')
    // The client never comes back; others are served meanwhile, and the end of the server ends the call.
    expect((await callModern(parking.url, 'echo', { arguments: { text: 'x' } })).result).toBeDefined()
    await parking[Symbol.asyncDispose]()
    await expect.poll(() => own.stats.sessions).toBe(0)
  })
})

async function inTurns<T>(clients: readonly WireClient[], work: (client: WireClient) => Promise<T>): Promise<Set<T>> {
  const outcomes = new Set<T>()
  for (let i = 0; i < clients.length; i += AT_A_TIME)
    for (const outcome of await Promise.all(clients.slice(i, i + AT_A_TIME).map(work))) outcomes.add(outcome)
  return outcomes
}

/** Sends a request and reads nothing of its answer. */
async function silent(url: string, body: string, session: string): Promise<Socket> {
  const { hostname, port, host } = new URL(url)
  const socket = connectSocket({ host: hostname, port: Number(port) })
  socket.on('error', () => undefined)
  socket.pause()
  const head = [
    'POST /mcp HTTP/1.1',
    `Host: ${host}`,
    'Content-Type: application/json',
    'Accept: application/json, text/event-stream',
    `Mcp-Session-Id: ${session}`,
    `Content-Length: ${Buffer.byteLength(body)}`,
  ]
  await new Promise<void>((resolve) => socket.write(`${head.join('\r\n')}\r\n\r\n${body}`, () => resolve()))
  return socket
}
