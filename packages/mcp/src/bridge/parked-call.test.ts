import { TestClock } from '@thv/kernel/clock'
import { describe, expect, it } from 'vitest'
import type { McpClient } from '../client/mcp-client.ts'
import type { JsonObject } from '../json-rpc.ts'
import { METHODS } from '../methods.ts'
import { PARKED_MS, ParkedCall } from './parked-call.ts'

const ROOTS = { method: METHODS.rootsList, params: {} }
const FOREVER = new AbortController().signal

function startCall() {
  const clock = new TestClock()
  const { promise, resolve } = Promise.withResolvers<JsonObject>()
  const events: string[] = []
  const call = new ParkedCall({
    ...{ id: 'x', principal: 'ada', party: 'ada', digest: 'd', clock },
    onOver: (isClean) => events.push(isClean ? 'over' : 'given up'),
    onEnd: () => events.push('end'),
  })
  call.start({ request: () => promise } as unknown as McpClient, METHODS.toolsCall, {}, false)
  return { clock, call, finish: resolve, events }
}

describe('a parked call', () => {
  it('answers with the result of a backend that did not wait for an answer', async () => {
    const { call, finish, events } = startCall()
    const round = call.next({})
    const refused = expect(call.ask(ROOTS, FOREVER)).rejects.toThrow('the call has ended')
    finish({ content: [] })
    expect(await round).toEqual({ result: { content: [] } })
    await refused
    expect(new Set(events)).toEqual(new Set(['over', 'end']))
  })

  it('keeps the result for a client that was asked and is on its way back', async () => {
    const { call, finish, events, clock } = startCall()
    const refused = expect(call.ask(ROOTS, FOREVER)).rejects.toThrow('the call has ended')
    expect(await call.next({})).toMatchObject({ inputRequests: { 'roots-1': ROOTS } })
    finish({ content: [] })
    await refused
    expect(events).toEqual(['over'])
    call.answer({ 'roots-1': { roots: [] } })
    expect(await call.next({})).toEqual({ result: { content: [] } })
    expect([events, clock.pending]).toEqual([['over', 'end'], 0])
  })

  it('forgets the result when the client does not come back', async () => {
    const { call, finish, events, clock } = startCall()
    call.ask(ROOTS, FOREVER).catch(() => undefined)
    await call.next({})
    finish({})
    await clock.advance(PARKED_MS)
    expect([events, clock.pending]).toEqual([['over', 'end'], 0])
  })

  it('puts a question that comes after one was withdrawn', async () => {
    const { call, clock } = startCall()
    const withdrawn = new AbortController()
    const round = call.next({})
    const first = call.ask(ROOTS, withdrawn.signal)
    withdrawn.abort(new Error('not needed'))
    await expect(first).rejects.toThrow('not needed')
    await clock.advance(50)
    call.ask({ method: METHODS.elicit, params: {} }, FOREVER).catch(() => undefined)
    await clock.advance(50)
    expect(await round).toMatchObject({ inputRequests: { 'elicitation-2': { method: METHODS.elicit } } })
    call.end('the test is over')
  })
})
