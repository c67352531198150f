import { createHash } from 'node:crypto'
import type { Clock } from '@thv/kernel/clock'
import { ThvError } from '@thv/kernel/errors'
import { type Ipv4Range, ipv4Text } from './ipv4-range.ts'

export interface PodAddresses {
  /** The same for the same uid until it is released. Throws `network_unavailable` when none is left. */
  take(uid: string): string
  release(uid: string): void
}

/** Connections to a pod that is gone must fail, not reach the next one: so long an address stays unused. */
const REST_MS = 300_000

/**
 * The uid says where to look first, so that a pod mostly keeps its address over a restart of the platform without anything being
 * written down. The last two addresses of the range belong to the platform.
 */
export function createPodAddresses(range: Ipv4Range, clock: Clock): PodAddresses {
  const byUid = new Map<string, number>()
  const taken = new Set<number>()
  /** Of addresses at rest: when they were released, in that order. */
  const resting = new Map<number, number>()

  function findFree(uid: string): number | undefined {
    for (const [address, since] of resting) {
      if (clock.monotonic() - since < REST_MS) break
      resting.delete(address)
    }
    const start = createHash('sha256').update(uid).digest().readUInt32BE(0) % range.size
    for (let step = 0; step < range.size; step++) {
      const address = range.first + ((start + step) % range.size)
      if (isUsable(address) && !taken.has(address) && !resting.has(address)) return address
    }
    return resting.keys().next().value // better the one that has rested longest than none
  }

  /** Not what looks like the address of a network or a broadcast to one. */
  function isUsable(address: number): boolean {
    const last = address & 0xff
    return last !== 0 && last !== 255 && address < range.first + range.size - 2
  }

  return {
    take(uid) {
      const known = byUid.get(uid)
      if (known !== undefined) return ipv4Text(known)
      const address = findFree(uid)
      if (address === undefined) throw new ThvError('network_unavailable', `all addresses for pods are taken (${taken.size})`)
      resting.delete(address)
      taken.add(address)
      byUid.set(uid, address)
      return ipv4Text(address)
    },
    release(uid) {
      const address = byUid.get(uid)
      if (address === undefined) return
      byUid.delete(uid)
      taken.delete(address)
      resting.set(address, clock.monotonic())
    },
  }
}
