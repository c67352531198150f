import { TestClock } from '@thv/kernel/clock'
import { createMemorySessionStore } from '@thv/store/memory-session-store'
import type { JsonValue } from '@thv/store/session-store'
import { CollectingLog } from '@thv/telemetry/testing/collecting-log'
import type { SuspendedWorkflow } from '@thv/workflow/run-workflow'
import { describe, expect, it } from 'vitest'
import { SealKeys } from '../seal/seal-keys.ts'
import { SharedWorkflows } from './shared-workflows.ts'
import { SuspendedWorkflows, type WaitingWorkflows } from './suspended-workflows.ts'

const seal = () => SealKeys.random().sealFor('workflows')
const OWNER = { principal: 'ada', party: 'principal ada', tool: 'asks', arguments: { x: 1 } }
const suspension = (text = '') => ({ state: { id: text, questions: ['ask'] } as unknown as SuspendedWorkflow, inputRequests: {} })

describe('workflows that wait for an answer', () => {
  const STORES: [string, (clock: TestClock) => WaitingWorkflows][] = [
    ['this process', (clock) => new SuspendedWorkflows(clock, seal())],
    [
      'a shared store',
      (clock) =>
        new SharedWorkflows({ store: createMemorySessionStore<JsonValue>({ clock }), seal: seal(), clock, log: new CollectingLog() }),
    ],
  ]

  it.each(STORES)('in %s go on once, for the same principal, tool and arguments', async (_, open) => {
    const waiting = open(new TestClock())
    const state = await waiting.keep(OWNER, suspension('one'))
    for (const other of [{ principal: 'bob' }, { tool: 'other' }, { arguments: { x: 2 } }])
      expect(await waiting.take({ ...OWNER, ...other }, state)).toBeUndefined()
    for (const forged of [undefined, '', 7, `${state}A`, await open(new TestClock()).keep(OWNER, suspension())])
      expect(await waiting.take(OWNER, forged)).toBeUndefined()
    const taken = await Promise.all([waiting.take(OWNER, state), waiting.take(OWNER, state)])
    expect(taken.filter((each) => each !== undefined).map((each) => each.state.id)).toEqual(['one'])
    expect(await waiting.take(OWNER, state)).toBeUndefined()
  })

  it.each(STORES)('in %s are given up after ten minutes, also when the question was put again', async (_, open) => {
    const clock = new TestClock()
    const waiting = open(clock)
    const first = await waiting.keep(OWNER, suspension())
    await clock.advance(599_000)
    const until = (await waiting.take(OWNER, first))?.until
    const second = await waiting.keep(OWNER, suspension(), until)
    expect(second).toBeDefined()
    await clock.advance(1_000)
    expect(await waiting.take(OWNER, second)).toBeUndefined()
  })

  it('have bounds per client, in number and in bytes', async () => {
    const waiting = new SuspendedWorkflows(new TestClock(), seal())
    const party = (name: number) => ({ ...OWNER, party: `principal ${name}` })
    const keptBy = async (name: number, size: number) => (await waiting.keep(party(name), suspension('x'.repeat(size)))) !== undefined
    const kept = async (count: number, size: number, of: (index: number) => number) =>
      (await Promise.all(Array.from({ length: count }, (_, index) => keptBy(of(index), size)))).filter(Boolean).length
    expect(await kept(17, 10, () => 0)).toBe(16)
    const large = await kept(80, 1_000_000, (index) => 1 + index)
    expect(large).toBeGreaterThan(60)
    expect(large).toBeLessThan(68)
    await waiting.close()
    expect(await kept(1_030, 1, (index) => index)).toBe(1_024)
    expect(waiting.size).toBe(1_024)
  })

  it('that are over 1 MiB are not put into a shared store', async () => {
    const [, open] = STORES[1] ?? []
    expect(await open?.(new TestClock()).keep(OWNER, suspension('x'.repeat(1_048_576)))).toBeUndefined()
  })
})
