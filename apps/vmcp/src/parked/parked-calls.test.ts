import { StreamableHTTPClientTransport } from '@modelcontextprotocol/client'
import { TestClock } from '@thv/kernel/clock'
import { McpErrorResponse } from '@thv/mcp/client/client-errors'
import { type Fixture, startFixture } from '@thv/testkit/mcp/fixture'
import { connectSdk } from '@thv/testkit/mcp/testing/sdk-client'
import { describe, expect, it } from 'vitest'
import type { LocalRefusal } from '../members/local-refusal.ts'
import type { Member } from '../members/member.ts'
import { outgoingScope } from '../members/outgoing-scope.ts'
import { SealKeys } from '../seal/seal-keys.ts'
import { callModern } from '../testing/call-modern.ts'
import { documentOf, startLive } from '../testing/live-vmcp.ts'
import { startTestVmcp, type TestVmcp } from '../testing/test-vmcp.ts'
import { ParkedCalls } from './parked-calls.ts'

const callTool = (vmcp: TestVmcp, name: string, more: Record<string, unknown> = {}, signal?: AbortSignal) =>
  callModern(vmcp.url, name, { arguments: { message: 'who?' }, ...more, ...(signal && { signal }) })

async function start(): Promise<{ vmcp: TestVmcp; fixture: Fixture; stack: AsyncDisposableStack }> {
  const stack = new AsyncDisposableStack()
  const fixture = stack.use(await startFixture({ era: 'legacy' }))
  const vmcp = stack.use(await startTestVmcp({ backends: { one: fixture.url } }))
  return { vmcp, fixture, stack }
}

const ACCEPTED = { action: 'accept', content: { username: 'ada', email: 'ada@example.com' } }

describe('questions of a legacy backend to a modern client', () => {
  it('reach the official client, whatever is asked, over one session at the backend', async () => {
    const { vmcp, fixture, stack } = await start()
    await using _ = stack
    await using sdk = await connectSdk(new StreamableHTTPClientTransport(new URL(vmcp.url)), 'modern')
    expect(await sdk.text('test_sampling', { prompt: 'capital?' })).toContain('Paris')
    expect(await sdk.text('test_elicitation', { message: 'who?' })).toContain('accept')
    expect(await sdk.text('echo', { text: 'plain' })).toContain('plain')
    expect(fixture.stats.count('initialize')).toBe(2)
    expect(fixture.stats.count('tools/call')).toBe(3)
  })

  it('come with a sealed state that leads back to the same call, once', async () => {
    const { vmcp, fixture, stack } = await start()
    await using _ = stack
    const { result } = await callTool(vmcp, 'test_elicitation')
    expect(result).toMatchObject({ resultType: 'input_required', inputRequests: { 'elicitation-1': { method: 'elicitation/create' } } })
    const requestState = result?.requestState
    const inputResponses = { 'elicitation-1': ACCEPTED, 'elicitation-9': ACCEPTED }
    const again = await callTool(vmcp, 'test_elicitation', { requestState, inputResponses: {} })
    expect(again.result?.resultType).toBe('input_required')
    const stale = await callTool(vmcp, 'test_elicitation', { requestState, inputResponses })
    expect(stale.error).toMatchObject({ code: -32602, data: { reason: 'expired' } })
    const done = await callTool(vmcp, 'test_elicitation', { requestState: again.result?.requestState, inputResponses })
    expect(done.result).toMatchObject({ resultType: 'complete' })
    expect(JSON.stringify(done.result?.content)).toContain('accept')
    const replayed = await callTool(vmcp, 'test_elicitation', { requestState: again.result?.requestState, inputResponses })
    expect(replayed.error?.code).toBe(-32602)
    expect(fixture.stats.count('tools/call')).toBe(1)
  })

  it('are not answered under a forged state or with other arguments', async () => {
    const { vmcp, stack } = await start()
    await using _ = stack
    const requestState = (await callTool(vmcp, 'test_elicitation')).result?.requestState ?? ''
    const inputResponses = { 'elicitation-1': ACCEPTED }
    const wrong: [string, Record<string, unknown>][] = [
      ['test_elicitation', { requestState: `${requestState}A` }],
      ['test_elicitation', { requestState: SealKeys.random().sealFor('parked calls').seal({ id: 'x' }) }],
      ['test_elicitation', { requestState: 'vmcp1.' }],
      ['test_elicitation', { requestState, arguments: { message: 'another' } }],
      ['test_sampling', { requestState }],
    ]
    for (const [name, more] of wrong) expect((await callTool(vmcp, name, { inputResponses, ...more })).error?.code).toBe(-32602)
    expect((await callTool(vmcp, 'test_elicitation', { requestState, inputResponses })).result?.resultType).toBe('complete')
  })

  it('end with the client that hangs up: the call is cancelled at the backend', async () => {
    const { vmcp, fixture, stack } = await start()
    await using _ = stack
    const leave = new AbortController()
    const hanging = callTool(vmcp, 'hang', {}, leave.signal)
    await expect.poll(() => fixture.stats.count('tools/call')).toBe(1)
    leave.abort()
    await expect(hanging).rejects.toThrow()
    await expect.poll(() => fixture.stats.cancelled.length).toBe(1)
  })
})

describe('a legacy backend that asks a modern client for what it cannot do', () => {
  it('is refused, and the call fails with the capability that it needs', async () => {
    const { vmcp, stack } = await start()
    await using _ = stack
    const { error } = await callTool(vmcp, 'test_missing_capability', { capabilities: {} })
    expect(error).toMatchObject({ code: -32021, data: { requiredCapabilities: { sampling: {} } } })
    expect((await callTool(vmcp, 'echo', { capabilities: {} })).result?.resultType).toBe('complete')
  })
})

describe('without bridge.parkedCalls', () => {
  it('a call fails when its backend asks, and says why; others pass over the shared session', async () => {
    await using fixture = await startFixture({ era: 'legacy' })
    await using vmcp = await startTestVmcp({ backends: { one: fixture.url }, config: { bridge: { parkedCalls: false } } })
    const capabilities = { elicitation: { form: {} } }
    const { error } = await callTool(vmcp, 'test_elicitation', { capabilities })
    expect(error).toMatchObject({ code: -32603, data: { reason: 'legacy interactive call', mayHaveRun: true } })
    expect(error?.message).toContain('bridge.parkedCalls')
    const undeclared = await callTool(vmcp, 'test_sampling', { capabilities, arguments: { prompt: 'x' } })
    expect(undeclared.error).toMatchObject({ code: -32021, data: { requiredCapabilities: { sampling: {} } } })
    expect((await callTool(vmcp, 'echo', { capabilities })).result?.resultType).toBe('complete')
    expect(fixture.stats.count('initialize')).toBe(1)
  })

  it('a call that is parked already goes on, and no further one is', async () => {
    await using fixture = await startFixture({ era: 'legacy' })
    const one = { name: 'one', url: fixture.url }
    const names = { aggregation: { conflictResolution: 'prefixOnConflict' } }
    await using live = await startLive(documentOf([one], names))
    const call = (more: Record<string, unknown> = {}) =>
      callModern(live.url, 'test_elicitation', { arguments: { message: 'who?' }, ...more })
    const first = await call()
    expect(first.result?.resultType).toBe('input_required')
    live.write(documentOf([one], { ...names, bridge: { parkedCalls: false } }))
    await expect.poll(() => live.offer.config.bridge.parkedCalls, { timeout: 20_000 }).toBe(false)
    expect((await call()).error).toMatchObject({ code: -32603, data: { reason: 'legacy interactive call' } })
    const done = await call({ requestState: first.result?.requestState, inputResponses: { 'elicitation-1': ACCEPTED } })
    expect(done.result?.resultType).toBe('complete')
  })
})

describe('calls that may be parked', () => {
  const settled = () => new Promise((resolve) => setImmediate(resolve))

  /** Calls that never end. */
  function open() {
    const client = { request: () => new Promise<never>(() => {}), close: async () => {} }
    const member = { name: 'one', isPerCaller: false, open: () => client } as unknown as Member
    const parked = new ParkedCalls(new TestClock(), SealKeys.random())
    const refused: string[] = []
    const call = (party: string, key?: string) => {
      const principal = party.startsWith('principal ') ? party : 'anonymous'
      const request = { member, method: 'tools/call', params: {}, capabilities: { elicitation: {} }, principal, party }
      const passed = key === undefined ? undefined : { headers: {}, key }
      outgoingScope.run({ caller: undefined, exchange: undefined, passed }, () => {
        const calling = parked.clientFor({ ...request, inputResponses: undefined, requestState: undefined })
        calling
          .request('tools/call')
          .catch((error: unknown) => refused.push(`${key ?? party} ${JSON.stringify((error as LocalRefusal).data)}`))
      })
    }
    return { call, refused, parked }
  }

  it('are 16 of one kind at a backend, and more where they are different', async () => {
    const { call, refused, parked } = open()
    for (let i = 0; i < 17; i++) call('address 10.0.0.1')
    await expect.poll(() => refused).toEqual(['address 10.0.0.1 {"reason":"busy"}'])
    for (let i = 0; i < 17; i++) call('principal ada', `key ${i}`)
    await settled()
    expect(refused).toHaveLength(1)
    await parked.close()
  })

  it('of users behind one gateway are counted by their headers, and leave room for others', async () => {
    const { call, refused, parked } = open()
    for (let i = 0; i < 17; i++) call('address 10.0.0.1', 'ada')
    await expect.poll(() => refused).toEqual(['ada {"reason":"busy"}'])
    for (let user = 0; user < 1_000; user++) call('address 10.0.0.1', `${user}`)
    await expect.poll(() => refused.length).toBe(1 + 1_000 - (768 - 16))
    call('principal bob')
    call('address 10.0.0.2')
    await settled()
    expect(refused).toHaveLength(1 + 1_000 - (768 - 16))
    await parked.close()
  })
})

describe('calls of one user that wait for answers', () => {
  type Handler = (params: object, options: { signal: AbortSignal }) => Promise<object>
  const REQUEST = {
    method: 'tools/call',
    params: {},
    capabilities: { elicitation: {} },
    inputResponses: undefined,
    requestState: undefined,
  }

  /** A backend that asks in each call and ends it in the given way, whatever the answer is. */
  function open(ending: (outcome: 'answered' | number) => Promise<object>, question: object = { message: 'who?' }) {
    const clock = new TestClock()
    const { signal } = new AbortController()
    const client = (elicitation: Handler) => {
      const asked = async () => {
        const outcome = await elicitation(question, { signal }).then(
          () => 'answered' as const,
          (error: unknown) => (error as LocalRefusal).rpcCode,
        )
        return await ending(outcome)
      }
      return { request: asked, close: async () => {} }
    }
    const member = {
      ...{ name: 'one', isPerCaller: false },
      open: ({ handlers }: { handlers: { elicitation: Handler } }) => client(handlers.elicitation),
    } as unknown as Member
    const keys = SealKeys.random()
    const parked = new ParkedCalls(clock, keys)
    // With headers of their own calls have sessions of their own.
    let count = 0
    const call = async (principal: string, more: object = {}) => {
      const request = { ...REQUEST, member, principal, party: `principal ${principal}`, ...more }
      const passed = { headers: {}, key: `${count++}` }
      const result = outgoingScope.run({ caller: undefined, exchange: undefined, passed }, () =>
        parked.clientFor(request).request('tools/call'),
      )
      const [answer] = await Promise.all([result, clock.advance(50)])
      return answer
    }
    return { call, parked, clock, keys }
  }

  const DONE = { content: [{ type: 'text', text: 'done' }] }

  it('are 16; the next question is refused, and others are asked all the same', async () => {
    const outcomes: unknown[] = []
    const { call, parked } = open(async (outcome) => {
      outcomes.push(outcome)
      return DONE
    })
    const asked = []
    for (let i = 0; i < 16; i++) asked.push(await call('ada'))
    expect(asked.map(({ resultType }) => resultType)).toEqual(Array(16).fill('input_required'))
    // The backend goes on without an answer.
    expect([await call('ada'), outcomes]).toEqual([{ ...DONE, resultType: 'complete' }, [-32601]])
    expect(await call('bob')).toMatchObject({ resultType: 'input_required' })
    // An answer makes room for the next question.
    const [{ requestState } = {}] = asked
    const inputResponses = { 'elicitation-1': { action: 'decline' } }
    expect(await call('ada', { requestState, inputResponses })).toMatchObject(DONE)
    expect(outcomes).toEqual([-32601, 'answered'])
    expect(await call('ada')).toMatchObject({ resultType: 'input_required' })
    await parked.close()
  })

  it('with a link show it without its id to a client that opens links, and fail for any other', async () => {
    const link = { mode: 'url', url: 'https://example.com/', message: 'open' }
    const outcomes: unknown[] = []
    const { call, parked } = open(
      async (outcome) => {
        outcomes.push(outcome)
        return DONE
      },
      { ...link, elicitationId: 'x' },
    )
    const shown = await call('ada', { capabilities: { elicitation: { url: {} } } })
    expect(shown).toMatchObject({ inputRequests: { 'elicitation-1': { method: 'elicitation/create', params: link } } })
    expect(JSON.stringify(shown['inputRequests'])).not.toContain('elicitationId')
    // Also where the backend goes on without an answer.
    await expect(call('bob', { capabilities: { elicitation: {}, sampling: {} } })).rejects.toMatchObject({
      rpcCode: -32021,
      data: { requiredCapabilities: { elicitation: { url: {} } } },
    })
    expect(outcomes).toEqual([-32601])
    await parked.close()
  })

  it('go on for their own principal alone, and not after five minutes', async () => {
    const outcomes: unknown[] = []
    const { call, parked, clock, keys } = open(async (outcome) => {
      outcomes.push(outcome)
      return DONE
    })
    const inputResponses = { 'elicitation-1': { action: 'accept', content: {} } }
    const { requestState } = await call('ada')
    await expect(call('eve', { requestState, inputResponses })).rejects.toMatchObject({ rpcCode: -32602 })
    // Another replica with the same secret has no such call, and says why.
    const elsewhere = new ParkedCalls(clock, keys)
    const foreign = {
      ...REQUEST,
      member: { name: 'one' } as Member,
      principal: 'ada',
      party: 'principal ada',
      requestState,
      inputResponses,
    }
    await expect(elsewhere.clientFor(foreign).request('tools/call')).rejects.toMatchObject({ rpcCode: -32602 })
    expect(outcomes).toEqual([])
    await clock.advance(300_000)
    await expect(call('ada', { requestState, inputResponses })).rejects.toMatchObject({ rpcCode: -32602, data: { reason: 'expired' } })
    // The call was given up at the backend, whose question has no answer.
    expect(outcomes).toHaveLength(1)
    expect(outcomes).not.toContain('answered')
    await Promise.all([parked.close(), elsewhere.close()])
  })

  it('are the reason that a call gives that failed without an answer', async () => {
    const failures: (() => Promise<object>)[] = [
      async () => ({ isError: true, content: [] }),
      () => Promise.reject(new McpErrorResponse({ code: -32603, message: 'no answer' })),
    ]
    for (const fail of failures) {
      const { call, parked } = open(fail)
      for (let i = 0; i < 16; i++) await call('ada')
      await expect(call('ada')).rejects.toMatchObject({ rpcCode: -32603, data: { reason: 'busy', mayHaveRun: true } })
      await parked.close()
    }
  })
})
