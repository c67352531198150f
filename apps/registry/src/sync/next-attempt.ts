import type { SourceConfig } from '@thv/catalog/sources/fetch/source-config'
import { createBackoff } from '@thv/kernel/backoff'
import type { LeasedSource } from '../store/registry-store.ts'
import type { SyncOptions } from './sync-options.ts'

type Chance = Pick<SyncOptions, 'config' | 'random'>

/** For a source without an interval: until it is asked for. */
const NEVER_MS = 100 * 365 * 24 * 3_600_000
/** Between two failures of such a source. */
const MAX_RETRY_MS = 3_600_000
const MAX_DOUBLINGS = 30

/** Shorter by up to the configured share, so that replicas and sources do not fetch in step. */
export function nextAfterSuccess({ intervalMs }: SourceConfig, { config, random }: Chance): number {
  if (intervalMs === undefined) return NEVER_MS
  return intervalMs * (1 - config.jitter * random())
}

/** Doubles with each failure in a row, up to the interval. */
export function nextAfterFailure({ config: source, sync }: LeasedSource, { config, random }: Chance): number {
  const maxMs = source.intervalMs ?? MAX_RETRY_MS
  const backoff = createBackoff({ baseMs: Math.min(config.retryMs, maxMs), maxMs, random })
  for (let i = 0; i < Math.min(sync.attemptCount, MAX_DOUBLINGS); i++) backoff.next()
  return backoff.next()
}
