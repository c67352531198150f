import { describe, expect, it } from 'vitest'
import { closestNames, suggestion } from './closest.ts'

const NAMES = ['add_numbers', 'greet', 'echo', 'structured_point', 'structured_list']

describe('closestNames', () => {
  it.each([
    ['add_number', ['add_numbers']],
    ['ad_nmbers', ['add_numbers']],
    ['GREAT', ['greet']],
    ['ecko', ['echo']],
    ['structured', ['structured_list', 'structured_point']],
    ['point', ['structured_point']],
    ['zzzzzz', []],
    ['', []],
  ])('%s: %j', (typed, expected) => {
    expect(closestNames(typed, NAMES)).toEqual(expected)
  })

  it('is a question, or nothing', () => {
    expect(suggestion('ecko', NAMES)).toBe(' Did you mean "echo"?')
    expect(suggestion('zzzzzz', NAMES)).toBe('')
  })

  it('takes no long time over long names', () => {
    expect(closestNames('x'.repeat(1e6), ['y'.repeat(1e6)])).toEqual([])
  })
})
