import type { UpstreamTokens } from './upstream-tokens.ts'

/** For a proxy that sends no token of an upstream provider to its backend: what nothing uses is not kept. */
export const NO_UPSTREAM_TOKENS: UpstreamTokens = {
  save: async () => {},
  use: () => ({ kind: 'missing' }),
  rejected: () => {},
  needsLogin: () => {},
  join: async () => {},
  hasJoined: () => false,
  connectUrl: () => undefined,
  connected: async () => [],
  remove: async () => {},
  [Symbol.asyncDispose]: async () => {},
}
