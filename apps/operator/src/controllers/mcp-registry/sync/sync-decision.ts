import { parseDuration } from '@thv/kernel/duration'
import type { SyncStatus } from '../status/sync-status.ts'

export interface SyncQuestion {
  readonly known: SyncStatus | undefined
  readonly interval: string | undefined
  /** Undefined: no trigger, or an empty one. */
  readonly trigger: string | undefined
  readonly doneTrigger: string | undefined
  /** The source or its filter is another than at the last sync. */
  readonly changed: boolean
  /** The stored data are missing or were edited. */
  readonly damaged: boolean
  readonly now: number
}

export type SyncDecision =
  | { readonly sync: true; readonly reason: 'first' | 'retry' | 'manual' | 'changed' | 'damaged' | 'interval' }
  | { readonly sync: false; readonly nextMs: number | undefined }

const RETRY_MS = 30_000
const MAX_RETRY_MS = 300_000
/** The cache may not have the last write of a sync yet. */
const SETTLE_MS = 5_000

/** Whether the operator syncs now, and else when. Pure; the same after a restart, since all of it stands in the status. */
export function decideSync(question: SyncQuestion): SyncDecision {
  const { known, interval, trigger, doneTrigger, now } = question
  if (known?.phase === undefined) return { sync: true, reason: 'first' }
  if (question.changed) return { sync: true, reason: 'changed' }
  if (trigger !== undefined && trigger !== doneTrigger) return { sync: true, reason: 'manual' }
  if (known.phase !== 'Complete') {
    return due(known.lastAttempt, retryMs(known), now) ?? { sync: true, reason: 'retry' }
  }
  if (question.damaged) return due(known.lastSyncTime, SETTLE_MS, now) ?? { sync: true, reason: 'damaged' }
  if (interval === undefined) return { sync: false, nextMs: undefined }
  return due(known.lastSyncTime, parseDuration(interval), now) ?? { sync: true, reason: 'interval' }
}

/** From a failed sync to the next. */
export function retryMs({ attemptCount }: SyncStatus): number {
  const failures = Math.max(1, attemptCount ?? 1)
  return Math.min(MAX_RETRY_MS, RETRY_MS * 2 ** Math.min(failures - 1, 10))
}

/** Undefined: it is due. */
function due(since: string | undefined, waitMs: number, now: number): SyncDecision | undefined {
  const at = Date.parse(since ?? '') + waitMs
  return at > now ? { sync: false, nextMs: at - now } : undefined
}
