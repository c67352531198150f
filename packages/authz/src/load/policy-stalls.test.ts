import { runAtOnce } from '@thv/kernel/steps'
import { beforeAll, describe, expect, it, onTestFinished, vi } from 'vitest'
import { cedarEngine } from '../cedar-engine.ts'
import { compileParsed, type ParsedSet } from '../compile-policies.ts'
import { loadPolicies } from './load-policies.ts'
import { preparePolicies } from './prepare-policies.ts'

/*
 * The thread that serves calls never works long at a stretch for policies. Measured as the CPU of this thread, which other programs do not
 * take from it, and compared with the CPU of the whole.
 */

const group = (at: number, parents: readonly number[], type = 'THVGroup') => ({
  uid: { type, id: `group-${at}` },
  attrs: { note: 'x'.repeat(60) },
  parents: parents.map((of) => ({ type, id: `group-${of}` })),
})
const listOf = <T>(length: number, make: (at: number) => T) => Array.from({ length }, (_, at) => make(at))

const POLICIES = listOf(
  1_000,
  (at) => `permit(principal, action == Action::"call_tool", resource == Tool::"t${at}") when { context.claim_x == "${at}" };`,
)
/** About a megabyte. */
const GROUPS = listOf(7_000, (at) => group(at, at % 10 === 0 ? [] : [at - 1]))
const CHAIN = listOf(800, (at) => group(at, at === 0 ? [] : [at - 1]))
const ACTIONS = listOf(2_001, (at) => group(at, at === 0 ? [] : [0], 'Action'))
const OF_ACTIONS = listOf(200, (at) => `permit(principal, action in [Action::"group-0"], resource == Tool::"t${at}");`)

function parsedOf(policies: readonly string[], entities: readonly object[] = []): ParsedSet {
  const cedar = { policies, entities_json: JSON.stringify(entities) }
  const prepared = preparePolicies({ text: JSON.stringify({ version: '1.0', type: 'cedarv1', cedar }) })
  if (!prepared.ok) throw new Error(prepared.problems.join())
  return prepared.enforced.parsed
}

/** The engine itself takes long for these. */
function withEntities({ policies }: ParsedSet, entities: readonly object[]): ParsedSet {
  return { policies, entities: listOf(Math.ceil(entities.length / 100), (at) => JSON.stringify(entities.slice(100 * at, 100 * at + 100))) }
}

/** CPU of this thread, in microseconds. */
function cpuSince(before: NodeJS.CpuUsage): number {
  const { user, system } = process.threadCpuUsage(before)
  return user + system
}

describe('policies that are loaded while calls are served', () => {
  let large: ParsedSet
  beforeAll(() => {
    large = parsedOf(POLICIES, GROUPS)
  })

  it.each<[string, () => ParsedSet]>([
    ['1,000 policies and a megabyte of groups', () => large],
    ['a chain of 800 groups', () => withEntities(parsedOf(POLICIES.slice(0, 1)), CHAIN)],
    ['200 policies about 2,000 actions in one group', () => withEntities(parsedOf(OF_ACTIONS), ACTIONS)],
  ])('are put together in small pieces: %s', (_, make) => {
    const parsed = make()
    runAtOnce(compileParsed(parsed)) // until the engine has compiled the code
    const shares = listOf(4, () => {
      const steps = compileParsed(parsed)
      const times: number[] = []
      for (let done = false; !done; ) {
        const before = process.threadCpuUsage()
        done = steps.next().done === true
        times.push(cpuSince(before))
      }
      return Math.max(...times) / times.reduce((sum, time) => sum + time, 0)
    })
    // A collection of garbage falls into some step of most rounds; work at a stretch would be in all of them.
    expect(Math.min(...shares)).toBeLessThan(0.25)
  })

  it('leave the Cedar engine to another thread', async () => {
    const text = JSON.stringify({ version: '1.0', type: 'cedarv1', cedar: { policies: POLICIES, entities_json: JSON.stringify(GROUPS) } })
    // The engine of this thread: a worker has one of its own.
    const engine = cedarEngine() as unknown as Record<string, (...args: unknown[]) => unknown>
    const functions = Object.keys(engine).filter((name) => typeof engine[name] === 'function')
    const spies = functions.map((name) => vi.spyOn(engine, name))
    onTestFinished(() => {
      for (const spy of spies) spy.mockRestore()
    })
    const uses = () => spies.reduce((sum, { mock }) => sum + mock.calls.length, 0)
    expect(await loadPolicies({ text }, { server: 'test' })).toMatchObject({ ok: true })
    expect(uses()).toBe(0)
    preparePolicies({ text }) // what the worker does, in this thread
    expect(uses()).toBeGreaterThan(0)
  })
})
