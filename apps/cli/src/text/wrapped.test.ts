import fc from 'fast-check'
import { expect, it } from 'vitest'
import { wrapped } from './wrapped.ts'

it.each([
  ['short', {}, 'short'],
  ['one two three', { columns: 7 }, 'one two\nthree'],
  ['one two three', { columns: 9, first: 3, indent: 2 }, 'one\n  two\n  three'],
  ['averylongword and', { columns: 5 }, 'averylongword\nand'],
  ['', {}, ''],
])('%j %j becomes %j', (text, options, expected) => {
  expect(wrapped(text, options)).toBe(expected)
})

it('keeps every word and every line short', () => {
  const words = fc.array(fc.stringMatching(/^[a-z]{1,8}$/), { minLength: 1 })
  fc.assert(
    fc.property(words, (list) => {
      const lines = wrapped(list.join(' '), { columns: 20, first: 4, indent: 4 }).split('\n')
      expect(lines.join(' ').split(/ +/)).toEqual(list)
      for (const line of lines) expect(line.length).toBeLessThanOrEqual(20)
    }),
  )
})
