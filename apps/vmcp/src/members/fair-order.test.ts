import { describe, expect, it } from 'vitest'
import { type FairOrderOptions, fairOrder } from './fair-order.ts'

interface Item {
  readonly party: string
  readonly size: number
}

function order(entries: readonly (readonly [string, string, number?])[], options?: FairOrderOptions<string, Item>): string {
  return [...fairOrder(new Map(entries.map(([key, party, size = 1]) => [key, { party, size }])), options)].join('')
}

const CROWD = [
  ['a', 'ada'],
  ['1', 'mallory'],
  ['b', 'bob'],
  ['2', 'mallory'],
  ['3', 'mallory'],
] as const

describe('the order in which entries make room', () => {
  it('begins with the oldest of the party that has the most, until others have as many', () => {
    expect(order(CROWD)).toBe('12a3b')
  })

  it('is that of age where every party has one', () => {
    expect(
      order([
        ['c', 'carl'],
        ['a', 'ada'],
        ['b', 'bob'],
      ]),
    ).toBe('cab')
  })

  it('passes over what cannot be spared, which counts all the same', () => {
    expect(order(CROWD, { canSpare: (_, key) => key !== '1' && key !== '2' })).toBe('3ab')
  })

  it('counts how much room each takes', () => {
    const large = [['l', 'mallory', 10] as const, ...['a', 'b', 'c'].map((key) => [key, 'gateway', 1] as const)]
    expect(order(large.toReversed(), { weightOf: ({ size }) => size })).toBe('lcba')
  })
})
