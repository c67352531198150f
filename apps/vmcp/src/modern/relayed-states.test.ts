import type { Exchange } from '@thv/http/server/exchange'
import { TestClock } from '@thv/kernel/clock'
import { ThvError } from '@thv/kernel/errors'
import type { JsonObject } from '@thv/mcp/json-rpc'
import { createMemorySessionStore } from '@thv/store/memory-session-store'
import type { JsonValue } from '@thv/store/session-store'
import { CollectingLog } from '@thv/telemetry/testing/collecting-log'
import { startFixture } from '@thv/testkit/mcp/fixture'
import { describe, expect, it } from 'vitest'
import type { Member } from '../members/member.ts'
import { SealKeys } from '../seal/seal-keys.ts'
import { LocalUsedStates, SharedUsedStates, type UsedStates } from '../seal/used-states.ts'
import { callModern } from '../testing/call-modern.ts'
import { startTestVmcp } from '../testing/test-vmcp.ts'
import { RelayedStates } from './relayed-states.ts'

const ASKS = { resultType: 'input_required', inputRequests: { q: { method: 'roots/list' } } }

/** A modern backend that asks with a state of its own, and what it got. */
function backend(name: string, answer: (params: JsonObject) => JsonObject = () => ({ ...ASKS, requestState: 'inner' })) {
  const got: JsonObject[] = []
  const request = async (_method: string, params: JsonObject = {}) => {
    got.push(params)
    return answer(params)
  }
  return { got, member: { name, shared: { era: 'modern', request } } as unknown as Member }
}

function relay(keys = SealKeys.random(), clock = new TestClock(), used: UsedStates = new LocalUsedStates()) {
  const states = new RelayedStates(clock, keys.sealFor('relayed states'), used)
  const send = (member: Member, params: JsonObject, principal = 'ada') =>
    states
      .clientFor({ member, method: 'tools/call', params, capabilities: { roots: {} }, principal, exchange: {} as Exchange })
      .request('tools/call', params)
  return { send, clock, keys }
}

const CALL = { name: 'tool', arguments: { a: 1, b: 2 } }
const REFUSED = { rpcCode: -32602 }

describe('the state of a modern backend', () => {
  it('leads the same call of the same principal back, once', async () => {
    const { send } = relay()
    const { member, got } = backend('one')
    const { requestState } = await send(member, CALL)
    expect(String(requestState)).not.toContain('inner')
    const retry = { ...CALL, arguments: { b: 2, a: 1 }, requestState, inputResponses: { q: { action: 'accept' } } }
    await send(member, retry)
    expect(got[1]).toMatchObject({ requestState: 'inner', inputResponses: { q: { action: 'accept' } } })
    await expect(send(member, retry)).rejects.toMatchObject({ ...REFUSED, data: { reason: 'expired' } })
    expect(got).toHaveLength(2)
  })

  it('is worthless for another principal, backend, tool, method or arguments, and when it is forged or late', async () => {
    const { send, clock, keys } = relay()
    const { member, got } = backend('one')
    const { requestState } = await send(member, CALL)
    const retry = { ...CALL, requestState }
    await expect(send(member, retry, 'bob')).rejects.toMatchObject(REFUSED)
    await expect(send(backend('two').member, retry)).rejects.toMatchObject(REFUSED)
    await expect(send(member, { ...retry, name: 'other' })).rejects.toMatchObject(REFUSED)
    await expect(send(member, { ...retry, arguments: { a: 1 } })).rejects.toMatchObject(REFUSED)
    const foreign = keys.sealFor('workflows').seal({ inner: 'inner' })
    for (const forged of ['inner', '', 7, `${String(requestState)}A`, foreign])
      await expect(send(member, { ...CALL, requestState: forged })).rejects.toMatchObject({ ...REFUSED, data: { reason: 'invalid' } })
    await clock.advance(600_001)
    await expect(send(member, retry)).rejects.toMatchObject(REFUSED)
    expect(got).toHaveLength(1)
  })

  it('is not used up by a request that the backend did not answer', async () => {
    const { send } = relay()
    let isDown = false
    const { member } = backend('one', () => {
      if (isDown) throw new ThvError('backend_unavailable', 'down')
      return { ...ASKS, requestState: '' }
    })
    const { requestState } = await send(member, CALL)
    isDown = true
    await expect(send(member, { ...CALL, requestState })).rejects.toThrow('down')
    isDown = false
    expect(await send(member, { ...CALL, requestState })).toMatchObject(ASKS)
  })

  it('stays used whatever others do: one that used many makes the server forget its own alone', async () => {
    const { send } = relay(SealKeys.random(), new TestClock(), new LocalUsedStates(10))
    const { member } = backend('one')
    const used = async (principal: string) => {
      const { requestState } = await send(member, CALL, principal)
      await send(member, { ...CALL, requestState }, principal)
      return { ...CALL, requestState }
    }
    const ada = await used('ada')
    const mallory = await used('mallory')
    for (let i = 0; i < 50; i++) await used('mallory')
    await expect(send(member, ada, 'ada')).rejects.toMatchObject({ ...REFUSED, data: { reason: 'expired' } })
    await expect(send(member, mallory, 'mallory')).resolves.toMatchObject(ASKS)
  })

  it('counts against the party that used it in a store that replicas share', async () => {
    const keys = SealKeys.random()
    const clock = new TestClock()
    const store = createMemorySessionStore<JsonValue>({ clock, maxSessions: 10 })
    const replica = () => relay(keys, clock, new SharedUsedStates(store, new CollectingLog()))
    const { member } = backend('one')
    const one = replica()
    const { requestState } = await one.send(member, CALL, 'ada')
    await one.send(member, { ...CALL, requestState }, 'ada')
    for (let i = 0; i < 50; i++) {
      const { requestState: state } = await one.send(member, CALL, 'mallory')
      await one.send(member, { ...CALL, requestState: state }, 'mallory')
    }
    await expect(replica().send(member, { ...CALL, requestState }, 'ada')).rejects.toMatchObject({
      ...REFUSED,
      data: { reason: 'expired' },
    })
  })

  it('is opened by every replica with the same secret', async () => {
    const keys = SealKeys.random()
    const { member, got } = backend('one')
    const { requestState } = await relay(keys).send(member, CALL)
    await relay(keys).send(member, { ...CALL, requestState })
    expect(got[1]).toMatchObject({ requestState: 'inner' })
  })

  it('leads back once among all replicas that share a store, also of two at once', async () => {
    const keys = SealKeys.random()
    const clock = new TestClock()
    const store = createMemorySessionStore<JsonValue>({ clock })
    const replica = () => relay(keys, clock, new SharedUsedStates(store, new CollectingLog()))
    const { member, got } = backend('one')
    const { requestState } = await replica().send(member, CALL)
    const both = await Promise.allSettled([replica(), replica()].map(({ send }) => send(member, { ...CALL, requestState })))
    expect(both.map(({ status }) => status).toSorted()).toEqual(['fulfilled', 'rejected'])
    await expect(replica().send(member, { ...CALL, requestState })).rejects.toMatchObject({ ...REFUSED, data: { reason: 'expired' } })
    expect(got).toHaveLength(2)
  })

  it('can be used again at another replica where the backend did not answer, and waits for a store that is away', async () => {
    const keys = SealKeys.random()
    const clock = new TestClock()
    const store = createMemorySessionStore<JsonValue>({ clock })
    const log = new CollectingLog()
    const replica = () => relay(keys, clock, new SharedUsedStates(store, log))
    let isDown = false
    const { member, got } = backend('one', () => {
      if (isDown) throw new ThvError('backend_unavailable', 'down')
      return { ...ASKS, requestState: 'inner' }
    })
    const { requestState } = await replica().send(member, CALL)
    isDown = true
    await expect(replica().send(member, { ...CALL, requestState })).rejects.toThrow('down')
    isDown = false
    const { create } = store
    store.create = () => Promise.reject(new ThvError('redis_unavailable', 'away'))
    await expect(replica().send(member, { ...CALL, requestState })).rejects.toMatchObject({ rpcCode: -32603, data: { reason: 'busy' } })
    expect(got).toHaveLength(2) // the backend was not asked
    store.create = create
    expect(await replica().send(member, { ...CALL, requestState })).toMatchObject(ASKS)
  })

  it('stays used when another attempt with it, here or at another replica, cannot reach the store', async () => {
    const keys = SealKeys.random()
    const clock = new TestClock()
    const store = createMemorySessionStore<JsonValue>({ clock })
    const [one, two] = [1, 2].map(() => relay(keys, clock, new SharedUsedStates(store, new CollectingLog())))
    if (one === undefined || two === undefined) throw new Error('there are no replicas')
    const { member, got } = backend('one')
    const { requestState } = await one.send(member, CALL)
    await one.send(member, { ...CALL, requestState })
    const { create } = store
    store.create = () => Promise.reject(new ThvError('redis_unavailable', 'away'))
    for (const { send } of [one, two]) await expect(send(member, { ...CALL, requestState })).rejects.toThrow()
    store.create = create
    for (const { send } of [one, two])
      await expect(send(member, { ...CALL, requestState })).rejects.toMatchObject({ ...REFUSED, data: { reason: 'expired' } })
    expect(got).toHaveLength(2)
  })

  it('is refused when it is no text or over 64 KiB; none stays none', async () => {
    const { send } = relay()
    for (const requestState of ['x'.repeat(65_537), 7])
      await expect(send(backend('one', () => ({ ...ASKS, requestState })).member, CALL)).rejects.toMatchObject({ rpcCode: -32603 })
    expect(await send(backend('one', () => ASKS).member, CALL)).toEqual(ASKS)
  })

  it('goes sealed through a whole virtual server', async () => {
    await using fixture = await startFixture({ era: 'modern' })
    await using vmcp = await startTestVmcp({ backends: { one: fixture.url } })
    const name = 'test_input_required_result_request_state'
    const asked = await callModern(vmcp.url, name)
    const requestState = asked.result?.requestState ?? ''
    expect(requestState).toMatch(/^vmcp1\./)
    const inputResponses = Object.fromEntries(
      Object.keys(asked.result?.inputRequests ?? {}).map((key) => [key, { action: 'accept', content: { confirm: true } }]),
    )
    const forged = await callModern(vmcp.url, name, { requestState: `${requestState}-TAMPERED`, inputResponses })
    expect(forged.error?.code).toBe(-32602)
    const other = await callModern(vmcp.url, name, { requestState, inputResponses, arguments: { other: 1 } })
    expect(other.error?.code).toBe(-32602)
    const done = await callModern(vmcp.url, name, { requestState, inputResponses })
    expect(JSON.stringify(done.result)).toContain('state-ok')
    expect((await callModern(vmcp.url, name, { requestState, inputResponses })).error?.code).toBe(-32602)
  })
})
