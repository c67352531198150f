import { describe, expect, it } from 'vitest'
import { sortInSteps } from './steps.ts'

describe('sortInSteps', () => {
  it.each([600, 5000, 60_000])('compares a bounded number of times between two steps, with %d items', (count) => {
    const items = Array.from({ length: count }, (_, i) => (i * 7919) % 65_521)
    let since = 0
    let most = 0
    const steps = sortInSteps(items, (a, b) => {
      since++
      return a - b
    })
    let step = steps.next()
    for (; !step.done; step = steps.next()) {
      most = Math.max(most, since)
      since = 0
    }
    most = Math.max(most, since)
    expect(step.value).toEqual(items.toSorted((a, b) => a - b))
    expect(most).toBeLessThan(20_000)
  })
})
