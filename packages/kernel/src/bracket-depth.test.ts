import { expect, it } from 'vitest'
import { bracketDepth } from './bracket-depth.ts'

it.each([
  ['', 0],
  ['a: [1, {b: [2]}]', 3],
  ['[] {} []', 1],
  [']]][', 0],
  ['['.repeat(1_000_000), 1_000_000],
])('counts the deepest brackets of a text', (text, depth) => {
  expect(bracketDepth(text)).toBe(depth)
})
