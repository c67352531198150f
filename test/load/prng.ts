/** Random numbers that come again with the same seed. */
export interface Prng {
  /** In [0, 1). */
  next(): number
  /** A whole number, 0 ≤ n < limit. */
  below(limit: number): number
  chance(share: number): boolean
  pick<T>(from: readonly T[]): T
}

/** mulberry32: small, fast, and good enough to choose test cases. */
export function createPrng(seed: number): Prng {
  let state = seed >>> 0
  const next = () => {
    state = (state + 0x6d2b79f5) >>> 0
    let mixed = Math.imul(state ^ (state >>> 15), state | 1)
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61)
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32
  }
  const below = (limit: number) => Math.floor(next() * limit)
  return {
    next,
    below,
    chance: (share) => next() < share,
    pick<T>(from: readonly T[]): T {
      if (from.length === 0) throw new RangeError('nothing to pick from')
      return from[below(from.length)] as T
    },
  }
}
