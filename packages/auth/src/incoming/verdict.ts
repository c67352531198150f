import type { Identity } from './authenticator.ts'

/** What one provider makes of a token. `reason` is for logs; clients are not told. */
export type Verdict =
  | { readonly kind: 'accepted'; readonly identity: Identity }
  | { readonly kind: 'rejected'; readonly reason: string }
  | { readonly kind: 'unavailable'; readonly waitMs: number }
