import { StreamableHTTPClientTransport } from '@modelcontextprotocol/client'
import { WireClient } from '@thv/gateway/testing/wire-client'
import { systemClock } from '@thv/kernel/clock'
import { connectSdk } from '@thv/testkit/mcp/testing/sdk-client'
import { describe, expect, it } from 'vitest'
import { callOpen, OpenStream } from './testing/open-stream.ts'
import { json, type ScriptedBackend, startScripted } from './testing/scripted-backend.ts'
import { sharedStores } from './testing/shared-stores.ts'
import { startTestVmcp } from './testing/test-vmcp.ts'

const CHAIN = {
  name: 'chain',
  description: 'Three steps, one after another.',
  steps: [1, 2, 3].map((n) => ({ id: `s${n}`, tool: 'one.work', arguments: { n }, ...(n > 1 && { dependsOn: [`s${n - 1}`] }) })),
}
const ASKS = {
  name: 'asks',
  description: 'Works, then asks.',
  steps: [
    { id: 'work', tool: 'one.work', arguments: { n: 1 } },
    { id: 'ask', type: 'elicitation', message: 'What?', schema: { type: 'object', properties: {} }, dependsOn: ['work'] },
  ],
}
const PATIENT = { timeout: 30_000 }

/** Answers at once, but the second call only when it is released. */
async function startWork(): Promise<ScriptedBackend & { release(): void }> {
  const held: (() => void)[] = []
  const scripted = await startScripted({
    era: 'legacy',
    call: ({ id, times }, response) => {
      const result = { content: [{ type: 'text', text: 'done' }] }
      const answer = () => json(response, JSON.stringify({ jsonrpc: '2.0', id, result }))
      if (times === 2) held.push(answer)
      else answer()
    },
  })
  const release = () => {
    for (const answer of held.splice(0)) answer()
  }
  return Object.assign(scripted, { release })
}

/** Two replicas over one backend. The clock of the second can be ahead, so that leases of the first have run out for it. */
async function startPair(backend: ScriptedBackend) {
  const stores = sharedStores()
  const lease = { aheadMs: 0 }
  const clock = { ...systemClock, now: () => systemClock.now() + lease.aheadMs }
  const options = { backends: { one: backend.url }, config: { compositeTools: [CHAIN, ASKS] }, stores }
  const one = await startTestVmcp(options)
  const two = await startTestVmcp({ ...options, clock })
  return {
    ...{ one, two, lease, noted: () => stores.size('running:') },
    async [Symbol.asyncDispose]() {
      await one[Symbol.asyncDispose]()
      await two[Symbol.asyncDispose]()
    },
  }
}

/** The stream that a client gets that has nothing to come back to: it stays open, and says nothing. */
async function expectStandalone(client: WireClient, eventId: string): Promise<void> {
  const leaving = new AbortController()
  const stream = new OpenStream(await client.get({ 'last-event-id': eventId }, leaving.signal))
  expect(await stream.eventId()).not.toBe(eventId)
  expect(stream.messages).toEqual([])
  leaving.abort()
  await stream.ended.catch(() => undefined)
}

function at(url: string, { sessionId }: WireClient): WireClient {
  const client = new WireClient(url)
  client.sessionId = sessionId
  return client
}

describe('a composite tool whose replica is gone', () => {
  it('is reported once, to its own session, with the steps that may have run, and runs no other step', async () => {
    await using backend = await startWork()
    await using pair = await startPair(backend)
    const client = new WireClient(pair.one.url)
    await client.initialize()
    const call = await callOpen(client, 'chain')
    const eventId = await call.eventId()
    await expect.poll(() => backend.calls.length, PATIENT).toBe(2)
    const elsewhere = at(pair.two.url, client)
    // The first replica renews its lease: the client comes again, with the same id.
    const early = await elsewhere.get({ 'last-event-id': eventId })
    expect([early.status, await early.text()]).toEqual([200, `id: ${eventId}\nretry: 3000\ndata: \n\n`])
    pair.lease.aheadMs = 60_000
    const stranger = new WireClient(pair.two.url)
    await stranger.initialize()
    await expectStandalone(stranger, eventId)
    const told = new OpenStream(await elsewhere.get({ 'last-event-id': eventId }))
    await told.ended
    expect(told.messages).toEqual([
      { jsonrpc: '2.0', id: 'call-1', error: { code: 5035, message: 'Composite tool interrupted', data: { mayHaveRun: 2 } } },
    ])
    await expectStandalone(elsewhere, eventId)
    backend.release()
    await call.ended
    expect(call.messages).toEqual([])
    expect(backend.calls).toHaveLength(2)
    await expect.poll(pair.noted, PATIENT).toBe(0)
  })

  it('asked a client that takes no empty event: its question is what the client comes back to', async () => {
    await using backend = await startWork()
    await using pair = await startPair(backend)
    const client = new WireClient(pair.one.url)
    const clientInfo = { name: 'old', version: '1' }
    const params = { protocolVersion: '2025-06-18', capabilities: { elicitation: {} }, clientInfo }
    client.sessionId = (await client.request('initialize', params)).headers.get('mcp-session-id') ?? undefined
    const call = await callOpen(client, 'asks')
    const eventId = await call.eventId()
    expect(call.messages).toMatchObject([{ method: 'elicitation/create' }])
    const elsewhere = at(pair.two.url, client)
    expect(await (await elsewhere.get({ 'last-event-id': eventId })).text()).toBe('retry: 3000\n\n')
    pair.lease.aheadMs = 60_000
    const told = new OpenStream(await elsewhere.get({ 'last-event-id': eventId }))
    await told.ended
    expect(told.messages).toMatchObject([{ id: 'call-1', error: { code: 5035, data: { mayHaveRun: 1 } } }])
    expect((await client.delete()).status).toBe(204)
    await call.ended
  })

  it('is an error of the call for an SDK client, which comes back by itself', async () => {
    await using backend = await startWork()
    await using pair = await startPair(backend)
    pair.lease.aheadMs = 60_000
    const broken = new AbortController()
    // Its streams are at the second replica, all else at the first, whose connection breaks.
    const via: typeof fetch = (input, init) => {
      const url = init?.method === 'GET' ? pair.two.url : String(input)
      const isCall = typeof init?.body === 'string' && init.body.includes('tools/call')
      return fetch(url, isCall ? { ...init, signal: broken.signal } : init)
    }
    const reconnectionOptions = { initialReconnectionDelay: 1, maxReconnectionDelay: 10, reconnectionDelayGrowFactor: 1, maxRetries: 5 }
    const transport = new StreamableHTTPClientTransport(new URL(pair.one.url), { fetch: via, reconnectionOptions })
    await using sdk = await connectSdk(transport, 'legacy')
    let seen: string | undefined
    const onresumptiontoken = (id: string) => {
      seen = id
    }
    const call = sdk.client.callTool({ name: 'chain', arguments: {} }, { onresumptiontoken })
    call.catch(() => undefined)
    await expect.poll(() => seen, PATIENT).toBeDefined()
    await expect.poll(() => backend.calls.length, PATIENT).toBe(2)
    broken.abort()
    await expect(call).rejects.toMatchObject({ code: 5035, data: { mayHaveRun: 2 } })
    backend.release()
    await expect.poll(pair.noted, PATIENT).toBe(0)
    expect(backend.calls).toHaveLength(2)
  })

  it('leaves no note when it ends, and makes none for other calls or where nothing is shared', async () => {
    await using backend = await startWork()
    await using pair = await startPair(backend)
    const client = new WireClient(pair.one.url)
    await client.initialize()
    const { headers } = await client.call('work', { n: 0 })
    expect(headers.get('content-type')).toBe('application/json')
    const call = await callOpen(client, 'chain')
    const eventId = await call.eventId()
    expect(await pair.noted()).toBe(1)
    await expect.poll(() => backend.calls.length, PATIENT).toBe(2)
    backend.release()
    await call.ended
    expect(call.messages).toMatchObject([{ id: 'call-1', result: { content: [{ text: 'done' }] } }])
    await expect.poll(pair.noted, PATIENT).toBe(0)
    await expectStandalone(at(pair.two.url, client), eventId)
    await using alone = await startTestVmcp({ backends: { one: backend.url }, config: { compositeTools: [CHAIN] } })
    const single = new WireClient(alone.url)
    await single.initialize()
    const answer = await single.call('chain')
    expect([answer.status, answer.headers.get('content-type')]).toEqual([200, 'application/json'])
  })
})
