import type { Clock } from '@thv/kernel/clock'
import { withTimeLimit } from '@thv/kernel/deadline'
import { UpstreamRefused } from '../upstream/upstream-refused.ts'
import type { UpstreamKey, UpstreamRefresher } from '../upstream-tokens.ts'
import { rowId, type UpstreamRow, withTokens } from './upstream-row.ts'
import type { VaultRows } from './vault-rows.ts'

/**
 * `row`: the row as it is now, with tokens that are other than those it was asked to replace. `ended`: no longer refreshable. `failed`: the
 * provider or the store could not be asked, or another replica is at it and takes long.
 */
export type RefreshOutcome =
  | { readonly kind: 'row'; readonly row: UpstreamRow }
  | { readonly kind: 'missing' | 'ended' }
  | { readonly kind: 'failed'; readonly reason: unknown }

export interface RefreshContext {
  readonly rows: VaultRows
  readonly refresher: UpstreamRefresher | undefined
  readonly clock: Clock
  readonly signal: AbortSignal
}

/** Longer than the request to the provider and the write that follows. */
const LOCK_MS = 30_000
const REQUEST_MS = 12_000
const JUDGE_MS = 5_000
/** Errors of a provider that say nothing of the refresh token: a secret of ours that is wrong for an hour must not log everybody out. */
const NOT_ABOUT_THE_TOKEN: ReadonlySet<string> = new Set(['invalid_client', 'server_error', 'slow_down', 'temporarily_unavailable'])
/** How long another replica is waited for. */
const WAIT_MS = 10_000

/** Replaces the tokens of `stale`, once among all replicas: a refresh token may be good for one use only. */
export async function refreshRow(key: UpstreamKey, stale: UpstreamRow, context: RefreshContext): Promise<RefreshOutcome> {
  const { rows, refresher, clock, signal } = context
  const deadline = clock.monotonic() + WAIT_MS
  try {
    // Before the lock, which does not live as long as a registration may take.
    await refresher?.prepare?.()
    for (;;) {
      const lock = await rows.lock(rowId(key), LOCK_MS)
      try {
        // The holder of the lock re-reads too: the refresh token that it knows may have been used a moment ago.
        const row = await rows.read(key)
        if (row === undefined) return { kind: 'missing' }
        if (row.accessToken !== stale.accessToken) return { kind: 'row', row }
        if (lock !== undefined) return await replaced(key, row, context)
      } finally {
        await lock?.[Symbol.asyncDispose]()
      }
      if (clock.monotonic() >= deadline) return { kind: 'failed', reason: new Error('another replica holds the lock') }
      await clock.sleep(100 + Math.random() * 200, signal)
    }
  } catch (reason) {
    return { kind: 'failed', reason }
  }
}

/** Removes the row for good. A refresh under way, here or at another replica, would write it again, so its end is waited for. */
export async function removeRow(key: UpstreamKey, { rows, clock, signal }: Omit<RefreshContext, 'refresher'>): Promise<void> {
  const deadline = clock.monotonic() + LOCK_MS
  for (;;) {
    await using lock = await rows.lock(rowId(key), LOCK_MS)
    if (lock !== undefined || clock.monotonic() >= deadline) return await rows.remove(key)
    await clock.sleep(100 + Math.random() * 200, signal)
  }
}

async function replaced(key: UpstreamKey, row: UpstreamRow, context: RefreshContext): Promise<RefreshOutcome> {
  const { rows, refresher, clock, signal } = context
  const { refreshToken, generation } = row
  if (refreshToken === undefined || refresher === undefined || refresher.generation !== generation) return { kind: 'ended' }
  try {
    const limit = { clock, timeoutMs: REQUEST_MS, what: `the refresh at provider ${key.provider}`, signals: [signal] }
    const tokens = await withTimeLimit(limit, (within) => refresher.refresh(refreshToken, within))
    const { idToken, ...others } = tokens
    // First of all: the refresh token before may be used up, whatever the ID token is worth.
    const stored = withTokens(row, refresher.judge === undefined ? tokens : others, clock.now())
    await rows.write(key, stored)
    if (idToken === undefined || refresher.judge === undefined) return { kind: 'row', row: stored }
    return await judged(key, { stored, idToken, judge: refresher.judge.bind(refresher) }, context)
  } catch (error) {
    if (!(error instanceof UpstreamRefused) || NOT_ABOUT_THE_TOKEN.has(error.message)) throw error
    // The access token may still be used until it ends; the refresh token is not tried again.
    await rows.write(key, { ...row, refreshToken: undefined })
    return { kind: 'ended' }
  }
}

/** The ID token of a refresh must be of the same user (OpenID Connect Core §12.2). One that proves nothing is not kept. */
async function judged(
  key: UpstreamKey,
  { stored, idToken, judge }: { stored: UpstreamRow; idToken: string; judge: NonNullable<UpstreamRefresher['judge']> },
  { rows, clock, signal }: RefreshContext,
): Promise<RefreshOutcome> {
  const limit = { clock, timeoutMs: JUDGE_MS, what: `the keys of provider ${key.provider}`, signals: [signal] }
  const verdict = await withTimeLimit(limit, () => judge(idToken, stored.subject)).catch(() => 'invalid' as const)
  if (verdict === 'invalid') return { kind: 'row', row: stored }
  if (verdict === 'other user') {
    await rows.remove(key)
    return { kind: 'ended' }
  }
  const row = { ...stored, idToken }
  await rows.write(key, row)
  return { kind: 'row', row }
}
