import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { isLabelKey, isLabelValue, type LabelSelector, labelSelectorProblem, parseLabelSelector } from './label-selector.ts'

const matches = (selector: string | LabelSelector, labels?: Record<string, string>) => parseLabelSelector(selector).matches(labels)

describe('text form', () => {
  test.each([
    ['', {}, true],
    ['  ', { a: '1' }, true],
    ['a=1', { a: '1' }, true],
    ['a==1', { a: '1' }, true],
    [' a = 1 , b == 2 ', { a: '1', b: '2' }, true],
    ['a=1,b=2', { a: '1' }, false],
    ['a=', { a: '' }, true],
    ['a=', {}, false],
    ['a!=1', { a: '2' }, true],
    ['a!=1', {}, true],
    ['a!=1', { a: '1' }, false],
    ['a!=', { a: '' }, false],
    ['a in (1,2)', { a: '2' }, true],
    ['a in(1, 2)', { a: '3' }, false],
    ['a in (1,2)', {}, false],
    ['a in ()', { a: '' }, true],
    ['a in (,x)', { a: '' }, true],
    ['a notin (1,2)', { a: '3' }, true],
    ['a notin (1,2)', {}, true],
    ['a notin (1,2)', { a: '1' }, false],
    ['a', { a: '' }, true],
    ['a', {}, false],
    ['!a', {}, true],
    ['!a', { a: '' }, false],
    ['! a,b', { b: 'x' }, true],
    ['example.com/role in (x,y),!example.com/off', { 'example.com/role': 'y' }, true],
    ['in in (in,notin)', { in: 'notin' }, true],
    ['notin', { notin: 'x' }, true],
    ['a>5', { a: '6' }, true],
    ['a>5', { a: '5' }, false],
    ['a<5', { a: '04' }, true],
    ['a<5', { a: 'x' }, false],
    ['a<5', {}, false],
    ['constructor', {}, false],
  ] as const)('%j on %j is %j', (selector, labels, expected) => {
    expect(matches(selector, labels)).toBe(expected)
  })

  test.each([
    'a=1,',
    ',a',
    'a,,b',
    'a=1 b=2',
    'a in 1',
    'a in (1',
    'a in (1 2)',
    'a=b=c',
    '!a=1',
    '!',
    '=1',
    '()',
    'a>x',
    'a===1',
    'a in',
    'a=(1)',
    '-a',
    'a=b_',
    'A/B/c',
    'UP.case/x=1',
    'a=é',
    '!a in (b)',
  ])('%j is refused', (selector) => {
    expect(() => parseLabelSelector(selector)).toThrow(RangeError)
    expect(labelSelectorProblem(selector)).toMatch(/^label selector/)
  })
})

describe('manifest form', () => {
  test('labels and expressions must all hold', () => {
    const selector: LabelSelector = {
      matchLabels: { app: 'web' },
      matchExpressions: [
        { key: 'tier', operator: 'In', values: ['a', 'b'] },
        { key: 'env', operator: 'NotIn', values: ['dev'] },
        { key: 'owner', operator: 'Exists' },
        { key: 'skip', operator: 'DoesNotExist' },
      ],
    }
    const good = { app: 'web', tier: 'b', owner: 'x' }
    expect(matches(selector, good)).toBe(true)
    expect(matches(selector, { ...good, app: 'db' })).toBe(false)
    expect(matches(selector, { ...good, tier: 'c' })).toBe(false)
    expect(matches(selector, { ...good, env: 'dev' })).toBe(false)
    expect(matches(selector, { ...good, skip: '' })).toBe(false)
    expect(matches(selector, { app: 'web', tier: 'a' })).toBe(false)
    expect(parseLabelSelector(selector).text).toBe('app=web,tier in (a,b),env!=dev,owner,!skip')
  })

  test('an empty one matches everything, also objects without labels', () => {
    expect(matches({}, undefined)).toBe(true)
    expect(parseLabelSelector({}).text).toBe('')
  })

  test.each<[string, LabelSelector]>([
    ['In without values', { matchExpressions: [{ key: 'a', operator: 'In' }] }],
    ['NotIn without values', { matchExpressions: [{ key: 'a', operator: 'NotIn', values: [] }] }],
    ['Exists with values', { matchExpressions: [{ key: 'a', operator: 'Exists', values: ['x'] }] }],
    ['a bad key', { matchLabels: { 'a b': 'x' } }],
    ['a bad value', { matchLabels: { a: 'x y' } }],
    ['an unknown operator', { matchExpressions: [{ key: 'a', operator: 'Like' as 'In', values: ['x'] }] }],
  ])('%s is refused', (_name, selector) => {
    expect(labelSelectorProblem(selector)).toBeDefined()
  })
})

test('limits of keys and values', () => {
  const long = 'a'.repeat(63)
  expect(isLabelValue(long)).toBe(true)
  expect(isLabelValue(`${long}a`)).toBe(false)
  expect(isLabelKey(`${'a.'.repeat(126)}a/${long}`)).toBe(true)
  expect(isLabelKey(`${'a.'.repeat(126)}aa/${long}`)).toBe(false)
  expect(isLabelKey(`x/${long}a`)).toBe(false)
  expect(isLabelKey('')).toBe(false)
  expect(isLabelKey('x/')).toBe(false)
  expect(isLabelKey('/x')).toBe(false)
})

describe('properties', () => {
  const key = fc.constantFrom('a', 'b', 'example.com/c', 'in', 'notin')
  const value = fc.constantFrom('', '1', '2', 'x.y-z_0')
  const values = fc.uniqueArray(value, { minLength: 1, maxLength: 3 })
  const expression = fc.oneof(
    fc.record({ key, operator: fc.constantFrom('In' as const, 'NotIn' as const), values }),
    fc.record({ key, operator: fc.constantFrom('Exists' as const, 'DoesNotExist' as const) }),
  )
  const selector = fc.record({ matchLabels: fc.dictionary(key, value), matchExpressions: fc.array(expression, { maxLength: 3 }) })
  const labels = fc.dictionary(key, value)

  test('the text of a selector means the same as the selector', () => {
    fc.assert(
      fc.property(selector, labels, (given, on) => {
        const matcher = parseLabelSelector(given)
        expect(parseLabelSelector(matcher.text).matches(on)).toBe(matcher.matches(on))
        expect(parseLabelSelector(matcher.text).text).toBe(matcher.text)
      }),
    )
  })

  test('any text either parses or is refused, and what parses keeps its meaning', () => {
    const text = fc.string({ unit: fc.constantFrom('a', 'b', '1', ' ', '=', '!', ',', '(', ')', '<', '>', 'in', ' notin '), maxLength: 12 })
    fc.assert(
      fc.property(text, labels, (given, on) => {
        if (labelSelectorProblem(given) !== undefined) return
        const matcher = parseLabelSelector(given)
        expect(parseLabelSelector(matcher.text).matches(on)).toBe(matcher.matches(on))
      }),
      { numRuns: 2_000 },
    )
  })
})
