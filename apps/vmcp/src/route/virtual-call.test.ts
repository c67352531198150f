import { TestClock } from '@thv/kernel/clock'
import { parseText } from '@thv/mcp/parse-body'
import { CollectingLog } from '@thv/telemetry/testing/collecting-log'
import { describe, expect, it } from 'vitest'
import type { Member } from '../members/member.ts'
import { CallDeadlines } from './call-deadlines.ts'
import { VirtualCall, type VirtualCallOptions } from './virtual-call.ts'

const REQUEST = parseText('{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"ask"}}')

/** A call with a limit of 30 s of silence. */
function newCall(isAsking: () => boolean = () => false) {
  const clock = new TestClock()
  const answers: string[] = []
  const streams: number[] = []
  const options = {
    ...{ context: {}, request: REQUEST, timeoutMs: 30_000, retry: undefined, isIdempotent: false, isAsking },
    reply: { openStream: () => streams.push(clock.monotonic()), finish: (text: string) => answers.push(text), abandon: () => undefined },
    deps: { clock, log: new CollectingLog(), pipeline: { answerBytes: 0 }, deadlines: new CallDeadlines(clock) },
  } as unknown as VirtualCallOptions
  return { clock, answers, streams, call: new VirtualCall(options) }
}

/** Of a backend that never answers. */
function startCall(isAsking: () => boolean) {
  const { clock, answers, streams, call } = newCall(isAsking)
  const member = { name: 'one', health: { admit: () => undefined }, observed: (work: () => unknown) => work() } as unknown as Member
  const never = (_method: string, _params?: object, { signal }: { signal?: AbortSignal | undefined } = {}) =>
    new Promise<never>((_, reject) => signal?.addEventListener('abort', () => reject(signal.reason)))
  const running = call.run(member, { era: 'legacy', request: never }, { params: {} })
  return { clock, answers, streams, running }
}

describe('the time of a call', () => {
  it('is over when the backend has been silent for its limit', async () => {
    const { clock, answers, running } = startCall(() => false)
    await clock.advance(29_999)
    expect(answers).toEqual([])
    await clock.advance(1)
    await running
    expect(answers.map((text) => JSON.parse(text) as unknown)).toMatchObject([
      { id: 1, error: { data: { backend: 'one', mayHaveRun: true } } },
    ])
  })

  it('makes it a stream after five seconds, once, so that nothing on the way takes the connection for dead', async () => {
    const { clock, streams, running } = startCall(() => false)
    const begin = clock.monotonic()
    await clock.advance(4_999)
    expect(streams).toEqual([])
    await clock.advance(25_001)
    await running
    expect(streams).toEqual([begin + 5_000])
  })

  it('goes on while a person is asked, but not over the limit of the whole call', async () => {
    const { clock, answers, running } = startCall(() => true)
    await clock.advance(599_999)
    expect(answers).toEqual([])
    await clock.advance(1)
    await running
    expect([answers.length, clock.pending]).toEqual([1, 0])
  })

  it('is over for one that cannot be routed yet, too: what it waits for is given up, and nothing has run', async () => {
    const { clock, answers, call } = newCall()
    let given: AbortSignal | undefined
    const routing = call.route((signal) => {
      given = signal
      return new Promise<never>(() => {})
    })
    await clock.advance(29_999)
    expect([answers, given?.aborted]).toEqual([[], false])
    await clock.advance(1)
    expect(await routing).toBeUndefined()
    expect(answers.map((text) => JSON.parse(text) as unknown)).toMatchObject([
      { id: 1, error: { message: expect.stringMatching(/time/), data: { timeoutMs: 30_000, mayHaveRun: false } } },
    ])
    expect([given?.aborted, clock.pending]).toEqual([true, 0])
  })

  it('is over when the client cancels a call that cannot be routed yet, without an answer', async () => {
    const { clock, answers, call } = newCall()
    let given: AbortSignal | undefined
    const routing = call.route((signal) => {
      given = signal
      return new Promise<never>(() => {})
    })
    call.abandon('the client cancelled the call')
    expect(await routing).toBeUndefined()
    expect([answers, given?.aborted]).toEqual([[], true])
    await clock.advance(60_000)
    expect(answers).toEqual([])
  })

  it('goes on with the route that was found', async () => {
    const { answers, call } = newCall()
    expect(await call.route(async () => ({ found: 'one' }))).toEqual({ found: 'one' })
    await expect(call.route(() => Promise.reject(new Error('a fault')))).rejects.toThrow('a fault')
    expect(answers).toEqual([])
  })
})
