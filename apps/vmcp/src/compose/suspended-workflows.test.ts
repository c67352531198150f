import { TestClock } from '@thv/kernel/clock'
import type { SuspendedWorkflow } from '@thv/workflow/run-workflow'
import { describe, expect, it } from 'vitest'
import { SealKeys } from '../seal/seal-keys.ts'
import { SuspendedWorkflows } from './suspended-workflows.ts'

const seal = () => SealKeys.random().sealFor('workflows')
const OWNER = { principal: 'ada', party: 'principal ada', tool: 'asks', arguments: { x: 1 } }
const suspension = (text = '') => ({ state: { id: text, questions: ['ask'] } as unknown as SuspendedWorkflow, inputRequests: {} })

describe('workflows that wait for an answer', () => {
  it('go on once, for the same principal, tool and arguments', () => {
    const waiting = new SuspendedWorkflows(new TestClock(), seal())
    const state = waiting.keep(OWNER, suspension('one'))
    for (const other of [{ principal: 'bob' }, { tool: 'other' }, { arguments: { x: 2 } }])
      expect(waiting.take({ ...OWNER, ...other }, state)).toBeUndefined()
    for (const forged of [undefined, '', 7, `${state}A`, new SuspendedWorkflows(new TestClock(), seal()).keep(OWNER, suspension())])
      expect(waiting.take(OWNER, forged)).toBeUndefined()
    expect(waiting.take(OWNER, state)?.state.id).toBe('one')
    expect(waiting.take(OWNER, state)).toBeUndefined()
    expect(waiting.size).toBe(0)
  })

  it('are given up after ten minutes, also when the question was put again', async () => {
    const clock = new TestClock()
    const waiting = new SuspendedWorkflows(clock, seal())
    const first = waiting.keep(OWNER, suspension())
    await clock.advance(599_000)
    const until = waiting.take(OWNER, first)?.until
    const second = waiting.keep(OWNER, suspension(), until)
    expect(waiting.size).toBe(1)
    await clock.advance(1_000)
    expect(waiting.size).toBe(0)
    expect(waiting.take(OWNER, second)).toBeUndefined()
  })

  it('have bounds per client, in number and in bytes', () => {
    const waiting = new SuspendedWorkflows(new TestClock(), seal())
    const party = (name: number) => ({ ...OWNER, party: `principal ${name}` })
    const keptBy = (name: number, size: number) => waiting.keep(party(name), suspension('x'.repeat(size))) !== undefined
    const small = Array.from({ length: 17 }, () => keptBy(0, 10))
    expect(small).toEqual([...Array.from({ length: 16 }, () => true), false])
    const large = Array.from({ length: 80 }, (_, index) => keptBy(1 + index, 1_000_000)).filter(Boolean).length
    expect(large).toBeGreaterThan(60)
    expect(large).toBeLessThan(68)
    waiting.close()
    const many = Array.from({ length: 1_030 }, (_, index) => keptBy(index, 1)).filter(Boolean).length
    expect(many).toBe(1_024)
  })
})
