import { describe, expect, it, vi } from 'vitest'
import { PATIENCE_MS, patientOptions } from './patience.ts'

describe('patientOptions', () => {
  it.each([
    [undefined, { timeout: PATIENCE_MS }],
    [1_000, PATIENCE_MS],
    [PATIENCE_MS + 1, PATIENCE_MS + 1],
    [{ interval: 10 }, { interval: 10, timeout: PATIENCE_MS }],
    [
      { interval: 10, timeout: 5 },
      { interval: 10, timeout: PATIENCE_MS },
    ],
    [{ timeout: PATIENCE_MS + 1 }, { timeout: PATIENCE_MS + 1 }],
  ])('of %j are %j', (options, expected) => {
    expect(patientOptions(options)).toEqual(expected)
  })
})

describe('waits of tests', () => {
  const slow = () => {
    const begin = performance.now()
    return () => performance.now() - begin > 50
  }

  it('outlast the limits that they name', async () => {
    const [polled, waited, held] = [slow(), slow(), slow()]
    await expect.poll(polled, { timeout: 1, interval: 5 }).toBe(true)
    await vi.waitFor(() => expect(waited()).toBe(true), 1)
    expect(await vi.waitUntil(held, { timeout: 1, interval: 5 })).toBe(true)
  })
})
