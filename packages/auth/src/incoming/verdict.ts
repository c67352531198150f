import type { Identity } from './authenticator.ts'

/** Verdict of one provider on a token. `reason` is for logs; clients never see it. */
export type Verdict =
  | { readonly kind: 'accepted'; readonly identity: Identity }
  | { readonly kind: 'rejected'; readonly reason: string }
  /** `ofToken`: only this token was not judged, and it is not asked about again before the wait is over. */
  | { readonly kind: 'unavailable'; readonly waitMs: number; readonly ofToken?: boolean }
