import { TestClock } from '@thv/kernel/clock'
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { isInRange, parseIpv4Range } from './ipv4-range.ts'
import { createPodAddresses } from './pod-addresses.ts'

const RANGE = parseIpv4Range('127.9.128.0/17')

describe('createPodAddresses', () => {
  it('keeps an address while the pod lives, and finds it again after a restart', () => {
    const addresses = createPodAddresses(RANGE, new TestClock())
    const address = addresses.take('a')
    expect(isInRange(address, RANGE)).toBe(true)
    expect(addresses.take('a')).toBe(address)
    expect(createPodAddresses(RANGE, new TestClock()).take('a')).toBe(address)
  })

  it('does not hand out an address again at once', async () => {
    const clock = new TestClock()
    const addresses = createPodAddresses(RANGE, clock)
    const first = addresses.take('a')
    addresses.release('a')
    expect(addresses.take('a')).not.toBe(first)
    addresses.release('a')
    await clock.advance(300_001)
    expect(addresses.take('a')).toBe(first)
  })

  it('gives the one that rested longest rather than none, and then says so', () => {
    const addresses = createPodAddresses(parseIpv4Range('127.9.128.0/29'), new TestClock())
    const uids = ['a', 'b', 'c', 'd', 'e'] // .1 to .5: the last two are the platform's
    const all = uids.map((uid) => addresses.take(uid))
    expect(new Set(all).size).toBe(5)
    expect(() => addresses.take('f')).toThrow(expect.objectContaining({ code: 'network_unavailable' }))
    addresses.release('c')
    addresses.release('a')
    expect(addresses.take('f')).toBe(all[2])
  })

  it('never gives two pods one address', () => {
    const step = fc.record({ uid: fc.integer({ min: 0, max: 12 }), take: fc.boolean() })
    fc.assert(
      fc.property(fc.array(step, { maxLength: 80 }), (steps) => {
        const addresses = createPodAddresses(parseIpv4Range('127.9.128.0/28'), new TestClock())
        const held = new Map<number, string>()
        for (const { uid, take } of steps) {
          if (!take) {
            addresses.release(String(uid))
            held.delete(uid)
            continue
          }
          const address = addresses.take(String(uid))
          expect(held.get(uid) ?? address).toBe(address)
          held.set(uid, address)
          expect(new Set(held.values()).size).toBe(held.size)
        }
      }),
    )
  })
})
