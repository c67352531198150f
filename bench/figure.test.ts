import { describe, expect, it } from 'vitest'
import { type Figure, judge, median, renderTable } from './figure.ts'

const ratio = (value: number): Figure => ({ name: 'sync', unit: 'ms', value, baseline: 100, aim: { of: 'ratio', limit: 1.5 } })
const difference = (value: number): Figure => ({ name: 'rss', unit: 'MB', value, baseline: 60, aim: { of: 'difference', limit: 10 } })

describe('judge', () => {
  it.each([
    [ratio(150), 'met'],
    [ratio(170), 'near'],
    [ratio(250), 'missed'],
    [ratio(301), 'failed'],
    [difference(50), 'met'],
    [difference(70), 'met'],
    [difference(72), 'near'],
    [difference(80), 'missed'],
    [difference(81), 'failed'],
  ] as const)('%j is %s', (figure, verdict) => expect(judge(figure)).toBe(verdict))
})

it('prints figures as a table with ratio and aim', () => {
  expect(renderTable([ratio(150), difference(70)])).toBe(
    [
      'figure    value  baseline  ratio         aim  verdict',
      'sync     150 ms    100 ms  1.50×      ≤ 1.5×      met',
      'rss     70.0 MB   60.0 MB  1.17×  ≤ +10.0 MB      met',
    ].join('\n'),
  )
})

it('gives the middle of several values', () => {
  expect(median([9, 1, 5])).toBe(5)
  expect(median([4, 1, 2, 9])).toBe(3)
})

it('prints a figure without an aim, or without a baseline, for information', () => {
  const figure: Figure = { name: 'start', unit: 'ms', value: 120, baseline: 0 }
  expect(judge(figure)).toBe('no aim')
  expect(renderTable([figure]).split('\n')[1]).toBe('start   120 ms    0.0 ms               no aim')
})
