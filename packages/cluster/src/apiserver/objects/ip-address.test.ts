import { isIP } from 'node:net'
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { formatFour, inRange, parseAddress, parseRange, rangeSize } from './ip-address.ts'

describe('addresses', () => {
  it('are read as Node reads them', () => {
    fc.assert(fc.property(fc.oneof(fc.ipV4(), fc.ipV6()), (text) => parseAddress(text) !== undefined))
    const nearly = fc.stringMatching(/^[0-9a-f:.]{0,20}$/)
    fc.assert(
      fc.property(nearly, (text) => {
        // Leading zeroes are the one difference.
        if (!/(^|\.)0\d/.test(text)) expect(parseAddress(text) !== undefined).toBe(isIP(text) !== 0)
      }),
    )
  })

  it('of IPv4 are written as they were read', () => {
    fc.assert(fc.property(fc.ipV4(), (text) => void expect(formatFour(parseAddress(text)?.value ?? 0n)).toBe(text)))
  })

  it.each([
    ['010.1.1.1', { family: 4, value: 0x0a010101n }],
    ['::ffff:192.0.2.1', { family: 4, value: 0xc0000201n }],
    ['2001:db8::1', { family: 6, value: 0x20010db8000000000000000000000001n }],
    ['1::2::3', undefined],
    ['1:2:3:4:5:6:7::', { family: 6, value: 0x00010002000300040005000600070000n }],
    ['1:2:3:4:5:6:7:8::', undefined],
    ['192.0.2.256', undefined],
    ['192.0.2.1.', undefined],
    ['', undefined],
  ])('%s', (text, expected) => {
    expect(parseAddress(text)).toEqual(expected)
  })
})

describe('ranges', () => {
  it('hold their addresses and no others', () => {
    const range = parseRange('127.96.0.0/17')
    if (range === undefined) throw new Error('not a range')
    expect(rangeSize(range)).toBe(32_768n)
    const has = (text: string) => inRange(range, parseAddress(text) ?? { family: 4, value: 0n })
    expect(['127.96.0.0', '127.96.127.255', '127.96.128.0', '127.95.255.255', '::1'].map(has)).toEqual([true, true, false, false, false])
  })

  it.each(['', '127.0.0.1', '127.0.0.1/', '127.0.0.1/33', '::1/129', '127.0.0.1/8/8', 'x/8', '127.0.0.1/-1'])('%s is none', (text) => {
    expect(parseRange(text)).toBeUndefined()
  })
})
