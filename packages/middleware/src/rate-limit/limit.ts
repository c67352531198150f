export type LimitScope = 'server' | 'user' | 'tool' | 'user-tool'

/** One token bucket per server or per user. */
export interface Limit {
  readonly scope: LimitScope
  /** For `tool` and `user-tool`. */
  readonly tool: string | undefined
  readonly maxTokens: number
  /** Time in which an empty bucket becomes full. */
  readonly periodMs: number
}

/** A bucket was empty: nothing was taken from any bucket of the call. */
export interface LimitReached {
  readonly limit: Limit
  /** Time until the bucket has a token. */
  readonly waitMs: number
}

export function isPerUser({ scope }: Limit): boolean {
  return scope === 'user' || scope === 'user-tool'
}
