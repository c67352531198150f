import type { Identity } from './authenticator.ts'

/** Verdict of one provider on a token. `reason` is for logs; clients never see it. */
export type Verdict =
  | { readonly kind: 'accepted'; readonly identity: Identity }
  | { readonly kind: 'rejected'; readonly reason: string }
  | { readonly kind: 'unavailable'; readonly waitMs: number }
