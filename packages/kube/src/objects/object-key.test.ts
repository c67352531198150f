import { expect, test } from 'vitest'
import { compareResourceVersions, formatKey, keyOf, parseKey } from './object-key.ts'

test('keys and their text', () => {
  for (const key of [{ name: 'a' }, { namespace: 'n', name: 'a.b:c' }]) expect(parseKey(formatKey(key))).toEqual(key)
  expect(formatKey({ namespace: 'n', name: 'a' })).toBe('n/a')
  expect(formatKey({ namespace: '', name: 'a' })).toBe('a')
  expect(keyOf({ metadata: { name: 'a', namespace: 'n' } })).toEqual({ namespace: 'n', name: 'a' })
  expect(keyOf({ metadata: { name: 'a' } })).toEqual({ name: 'a' })
})

test.each([
  ['9', '10', -1],
  ['10', '9', 1],
  ['10', '10', 0],
  ['18446744073709551615', '18446744073709551616', -1],
  ['', '1', undefined],
  ['abc', '1', undefined],
  ['01', '1', undefined],
  [undefined, '1', undefined],
])('versions %s and %s', (a, b, expected) => {
  const order = compareResourceVersions(a, b)
  expect(order === undefined ? undefined : Math.sign(order)).toBe(expected)
})
