/** A party may hold this many times as much as is free, so alone it gets three quarters of all, and something is left for everybody else. */
export const SHARE_OF_FREE = 3

export interface Holding {
  /** Of the party that wants more. */
  readonly own: number
  /** Of all parties together. */
  readonly used: number
  readonly limit: number
}

/**
 * Whether a party may hold one more of something that cannot be taken back while it is in use. There is no fixed share, which would be too
 * small for clients behind one gateway, who are one party; and no party can leave others without any, as the last ones go to those that hold
 * few. Pure.
 */
export function mayHoldMore({ own, used, limit }: Holding): boolean {
  return own < SHARE_OF_FREE * (limit - used)
}
