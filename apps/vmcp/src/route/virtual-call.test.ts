import { TestClock } from '@thv/kernel/clock'
import { parseText } from '@thv/mcp/parse-body'
import { CollectingLog } from '@thv/telemetry/testing/collecting-log'
import { describe, expect, it } from 'vitest'
import type { Member } from '../members/member.ts'
import { CallDeadlines } from './call-deadlines.ts'
import { VirtualCall, type VirtualCallOptions } from './virtual-call.ts'

const REQUEST = parseText('{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"ask"}}')

/** A call of a backend that never answers, with a limit of 30 s of silence. */
function startCall(isAsking: () => boolean) {
  const clock = new TestClock()
  const answers: string[] = []
  const options = {
    ...{ context: {}, request: REQUEST, timeoutMs: 30_000, retry: undefined, isIdempotent: false, isAsking },
    reply: { openStream: () => undefined, finish: (text: string) => answers.push(text) },
    deps: { clock, log: new CollectingLog(), pipeline: { answerBytes: 0 }, deadlines: new CallDeadlines(clock) },
  } as unknown as VirtualCallOptions
  const member = { name: 'one', health: { admit: () => undefined }, observed: (work: () => unknown) => work() } as unknown as Member
  const never = (_method: string, _params?: object, { signal }: { signal?: AbortSignal | undefined } = {}) =>
    new Promise<never>((_, reject) => signal?.addEventListener('abort', () => reject(signal.reason)))
  const running = new VirtualCall(options).run(member, { era: 'legacy', request: never }, { params: {} })
  return { clock, answers, running }
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

  it('goes on while a person is asked, but not over the limit of the whole call', async () => {
    const { clock, answers, running } = startCall(() => true)
    await clock.advance(599_999)
    expect(answers).toEqual([])
    await clock.advance(1)
    await running
    expect([answers.length, clock.pending]).toEqual([1, 0])
  })
})
