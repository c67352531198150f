import type { Clock } from '@thv/kernel/clock'

export interface TokenBucketOptions {
  perSecond: number
  burst: number
}

export interface TokenBucket {
  /** Takes one token, on credit if need be, and says how long to wait until it is really there. */
  reserve(): number
}

export function createTokenBucket({ perSecond, burst }: TokenBucketOptions, clock: Clock): TokenBucket {
  if (!(perSecond > 0 && burst >= 1))
    throw new RangeError(`a token bucket needs perSecond > 0 and burst >= 1, got ${perSecond} and ${burst}`)
  let tokens = burst
  let at = clock.monotonic()
  return {
    reserve() {
      const now = clock.monotonic()
      tokens = Math.min(burst, tokens + ((now - at) / 1_000) * perSecond)
      at = now
      tokens -= 1
      return tokens >= 0 ? 0 : (-tokens / perSecond) * 1_000
    },
  }
}
