import type { Condition } from '@thv/kube'
import { describe, expect, test } from 'vitest'
import { nextConditions, transitionEvents } from './conditions.ts'

const at = { generation: 2, now: Date.parse('2026-01-01T00:00:00Z') }
const condition = (type: string, status: 'True' | 'False', reason = 'Because', message = 'why'): Condition => ({
  type,
  status,
  reason,
  message,
  lastTransitionTime: '2025-01-01T00:00:00Z',
  observedGeneration: 2,
})

describe('nextConditions', () => {
  test('sets, replaces and removes; others stay', () => {
    const before = [condition('Mine', 'False'), condition('Gone', 'True'), condition('Theirs', 'True')]
    const after = nextConditions(before, { set: [{ type: 'Mine', status: 'True', reason: 'Now', message: 'm' }], remove: ['Gone'] }, at)
    expect(after.map(({ type, status }) => [type, status])).toEqual([
      ['Mine', 'True'],
      ['Theirs', 'True'],
    ])
    expect(after[0]?.lastTransitionTime).toBe('2026-01-01T00:00:00Z')
  })

  test('is the same array when nothing changes, so that nothing is written', () => {
    const before = [condition('Mine', 'True')]
    const { type, status, reason, message } = condition('Mine', 'True')
    expect(nextConditions(before, { set: [{ type, status, reason, message }], remove: ['Other'] }, at)).toBe(before)
  })
})

describe('transitionEvents', () => {
  const warnsWhenTrue = new Set(['Warned'])
  test.each<[string, Condition[], Condition[], string[]]>([
    ['nothing new', [condition('A', 'False')], [condition('A', 'False')], []],
    ['bad news at once', [], [condition('A', 'False', 'Missing')], ['Warning Missing']],
    ['bad news after good', [condition('A', 'True')], [condition('A', 'False', 'Missing')], ['Warning Missing']],
    ['another reason', [condition('A', 'False', 'One')], [condition('A', 'False', 'Two')], ['Warning Two']],
    ['another message', [condition('A', 'False', 'One', 'x')], [condition('A', 'False', 'One', 'y')], ['Warning One']],
    ['recovery', [condition('A', 'False')], [condition('A', 'True', 'Fine')], ['Normal Fine']],
    ['good from the start', [], [condition('A', 'True')], []],
    ['a warning that is True', [], [condition('Warned', 'True', 'Capped')], ['Warning Capped']],
    ['a warning that is False', [], [condition('Warned', 'False')], []],
    ['a warning that ends', [condition('Warned', 'True')], [condition('Warned', 'False', 'Free')], ['Normal Free']],
  ])('%s', (_, before, after, expected) => {
    expect(transitionEvents(before, after, { warnsWhenTrue }).map(({ type, reason }) => `${type} ${reason}`)).toEqual(expected)
  })

  test('a condition that starts bad is an event only after it was good', () => {
    const rules = { startsBad: new Set(['Ready']) }
    const no = [condition('Ready', 'False', 'NotReady')]
    const yes = [condition('Ready', 'True', 'Ready')]
    expect(transitionEvents([], no, rules)).toEqual([])
    expect(transitionEvents(no, [condition('Ready', 'False', 'Waiting')], rules)).toEqual([])
    expect(transitionEvents(no, yes, rules)).toMatchObject([{ type: 'Normal' }])
    expect(transitionEvents(yes, no, rules)).toMatchObject([{ type: 'Warning' }])
  })
})
