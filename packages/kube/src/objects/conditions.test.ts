import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { type Condition, type ConditionUpdate, getCondition, isTrue, removeCondition, setCondition } from './conditions.ts'

const t0 = '2026-01-01T00:00:00Z'
const t1 = '2026-01-01T00:05:00.123Z'
const ready: ConditionUpdate = { type: 'Ready', status: 'True', reason: 'AllGood', message: 'fine', observedGeneration: 1 }

describe('setCondition', () => {
  test('adds, at the end, with the time in whole seconds', () => {
    const one = setCondition(undefined, ready, t1)
    expect(one).toEqual([{ ...ready, lastTransitionTime: '2026-01-01T00:05:00Z' }])
    const two = setCondition(one, { ...ready, type: 'Other' }, t0)
    expect(two.map(({ type }) => type)).toEqual(['Ready', 'Other'])
  })

  test('the same again gives back the same array', () => {
    const list = setCondition([], ready, t0)
    expect(setCondition(list, { ...ready }, t1)).toBe(list)
  })

  test('the time changes with the status only', () => {
    const list = setCondition([], ready, t0)
    const reworded = setCondition(list, { ...ready, message: 'very fine', observedGeneration: 2 }, t1)
    expect(reworded).not.toBe(list)
    expect(reworded[0]).toMatchObject({ lastTransitionTime: t0, message: 'very fine', observedGeneration: 2 })
    const failed = setCondition(reworded, { ...ready, status: 'False', reason: 'Broken' }, t1)
    expect(failed[0]).toMatchObject({ lastTransitionTime: '2026-01-01T00:05:00Z', status: 'False' })
    expect(list[0]?.message).toBe('fine')
  })

  test('keeps the place of a condition', () => {
    let list = setCondition([], { ...ready, type: 'A' }, t0)
    list = setCondition(list, { ...ready, type: 'B' }, t0)
    list = setCondition(list, { ...ready, type: 'A', status: 'False' }, t1)
    expect(list.map(({ type }) => type)).toEqual(['A', 'B'])
  })

  test('cuts a message that the server would refuse, never within a character', () => {
    const [long] = setCondition([], { ...ready, message: 'x'.repeat(40_000) }, t0)
    expect(long?.message).toHaveLength(32_768)
    const [faces] = setCondition([], { ...ready, message: `x${'😀'.repeat(20_000)}` }, t0)
    expect(faces?.message.isWellFormed()).toBe(true)
    expect(faces?.message).toHaveLength(32_767)
    const list = setCondition([], { ...ready, message: 'x'.repeat(40_000) }, t0)
    expect(setCondition(list, { ...ready, message: 'x'.repeat(40_000) }, t1)).toBe(list)
  })

  test.each<[string, Partial<ConditionUpdate>]>([
    ['no reason', { reason: '' }],
    ['a reason with a space', { reason: 'Not Ready' }],
    ['a reason that ends badly', { reason: 'Bad:' }],
    ['a reason that is too long', { reason: 'x'.repeat(1025) }],
    ['a bad type', { type: 'Is Ready' }],
    ['an empty type', { type: '' }],
    ['a bad status', { status: 'true' as 'True' }],
  ])('%s is refused', (_name, part) => {
    expect(() => setCondition([], { ...ready, ...part }, t0)).toThrow(RangeError)
  })

  test('accepts the reasons and types that Kubernetes allows', () => {
    for (const reason of ['A', 'Has_Under', 'a1', 'With:Colon,Comma_x'])
      expect(setCondition([], { ...ready, reason }, t0)).toMatchObject([{ reason }])
    for (const type of ['Ready', 'example.com/Ready', 'a.b-c_d']) expect(setCondition([], { ...ready, type }, t0)).toMatchObject([{ type }])
  })

  test('property: idempotent, one per type, others untouched', () => {
    const update = fc.record({
      type: fc.constantFrom('A', 'B', 'C'),
      status: fc.constantFrom('True' as const, 'False' as const, 'Unknown' as const),
      reason: fc.constantFrom('R1', 'R2'),
      message: fc.constantFrom('', 'm'),
      observedGeneration: fc.option(fc.nat(2), { nil: undefined }),
    })
    fc.assert(
      fc.property(fc.array(update, { maxLength: 12 }), (updates) => {
        let list: readonly Condition[] = []
        for (const next of updates) {
          const before = list
          list = setCondition(list, next, t0)
          expect(setCondition(list, next, t1)).toBe(list)
          expect(new Set(list.map(({ type }) => type)).size).toBe(list.length)
          for (const other of before) if (other.type !== next.type) expect(list).toContain(other)
        }
      }),
    )
  })
})

test('removeCondition, getCondition, isTrue', () => {
  const list = setCondition(setCondition([], ready, t0), { ...ready, type: 'Other', status: 'False' }, t0)
  expect(removeCondition(list, 'Nothing')).toBe(list)
  expect(removeCondition(list, 'Ready').map(({ type }) => type)).toEqual(['Other'])
  expect(removeCondition(undefined, 'Ready')).toEqual([])
  expect(getCondition(list, 'Other')?.status).toBe('False')
  expect(isTrue(list, 'Ready')).toBe(true)
  expect(isTrue(list, 'Other')).toBe(false)
  expect(isTrue(undefined, 'Ready')).toBe(false)
})
