import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { addressPool, NOT_IN_RANGE, nextNodePort, nodePortRefusal, TAKEN } from './address-pool.ts'

describe('addresses of Services', () => {
  it('are all given out, each once, without the first and the last of the range', () => {
    const pool = addressPool('127.9.0.0/29')
    const taken = new Set<string>()
    for (let address = pool.next(taken); address !== undefined; address = pool.next(taken)) taken.add(address)
    expect([...taken].toSorted()).toEqual([1, 2, 3, 4, 5, 6].map((last) => `127.9.0.${last}`))
  })

  it('come from the upper part of the range as long as there is room', () => {
    const pool = addressPool('127.9.0.0/24')
    fc.assert(
      fc.property(fc.constant(undefined), () => Number(pool.next(new Set())?.split('.')[3]) > 16),
      { numRuns: 50 },
    )
    const upper = new Set(Array.from({ length: 254 - 16 }, (_, index) => `127.9.0.${index + 17}`))
    expect(Number(pool.next(upper)?.split('.')[3])).toBeLessThanOrEqual(16)
  })

  it.each([
    ['127.9.0.5', undefined],
    ['127.009.0.5', undefined],
    ['127.9.0.6', TAKEN],
    ['127.9.0.0', NOT_IN_RANGE],
    ['127.9.0.255', NOT_IN_RANGE],
    ['127.9.1.1', NOT_IN_RANGE],
    ['::1', NOT_IN_RANGE],
    ['None', NOT_IN_RANGE],
  ])('%s', (address, refusal) => {
    expect(addressPool('127.9.0.0/24').refusal(address, new Set(['127.9.0.6']))).toBe(refusal)
  })

  it.each(['', 'x', '127.9.0.0', '127.9.0.0/31', '::1/64'])('come from no such range as %j', (range) => {
    expect(() => addressPool(range)).toThrow(RangeError)
  })
})

describe('node ports', () => {
  it('are of their range, and each of one Service', () => {
    const taken = new Set<number>()
    for (let port = nextNodePort(taken); port !== undefined; port = nextNodePort(taken)) taken.add(port)
    expect(taken.size).toBe(2_768)
    expect([Math.min(...taken), Math.max(...taken)]).toEqual([30_000, 32_767])
    expect(nodePortRefusal(30_000, taken)).toBe('provided port is already allocated')
    expect(nodePortRefusal(30_000, new Set())).toBeUndefined()
    expect(nodePortRefusal(29_999, new Set())).toContain('30000-32767')
  })
})
