import { expect, it } from 'vitest'
import { keySlot } from './key-slot.ts'

it.each([
  ['123456789', 0x31c3],
  ['foo', 12_182],
  ['{foo}:bar', 12_182],
  ['x{foo}{bar}', 12_182],
  ['', 0],
])('the slot of %j is %i', (key, slot) => {
  expect(keySlot(key)).toBe(slot)
})

it('an empty hash tag counts for nothing', () => {
  expect(keySlot('{}foo')).not.toBe(keySlot('{}bar'))
})
