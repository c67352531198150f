import { type Backoff, createBackoff } from '@thv/kernel/backoff'
import type { Clock } from '@thv/kernel/clock'
import type { UpstreamTokenResult } from '../upstream-tokens.ts'
import type { UpstreamRow } from './upstream-row.ts'

/** A row as this process saw it last. Times are of the monotonic clock. */
export class CachedRow {
  row: UpstreamRow
  readAt: number
  /** Shared by all calls that use it. */
  readonly result: UpstreamTokenResult
  /** A backend did not take the access token. */
  rejectedAt: number | undefined
  #backoff: Backoff | undefined
  #nextAt = Number.NEGATIVE_INFINITY

  constructor(row: UpstreamRow, readAt: number) {
    this.row = row
    this.readAt = readAt
    this.result = { kind: 'usable', accessToken: row.accessToken, idToken: row.idToken }
  }

  seen(row: UpstreamRow, at: number): void {
    this.row = row
    this.readAt = at
  }

  mayRefresh(now: number): boolean {
    return now >= this.#nextAt
  }

  failed(now: number): void {
    this.#backoff ??= createBackoff({ baseMs: 1_000, maxMs: 30_000 })
    this.#nextAt = now + this.#backoff.next()
  }

  /** Until the next attempt. */
  waitMs(now: number): number {
    return Math.max(1_000, this.#nextAt - now)
  }
}

/** A row is read again after this, while calls go on with what is near. */
const FRESH_MS = 5_000
/** And after this before it is used. */
const OLD_MS = 60_000
const MAX_ROWS = 10_000

/** Rows near at hand, the least recently used out first. */
export class RowCache {
  readonly #clock: Clock
  readonly #rows = new Map<string, CachedRow>()
  readonly #forced = new Map<string, number>()

  constructor(clock: Clock) {
    this.#clock = clock
  }

  get(id: string): CachedRow | undefined {
    return this.#rows.get(id)
  }

  isDue({ readAt }: CachedRow): boolean {
    return this.#clock.monotonic() - readAt >= FRESH_MS
  }

  isOld({ readAt }: CachedRow): boolean {
    return this.#clock.monotonic() - readAt >= OLD_MS
  }

  set(id: string, row: CachedRow): void {
    this.#rows.delete(id)
    this.#rows.set(id, row)
    bound(this.#rows)
  }

  delete(id: string): void {
    this.#rows.delete(id)
    this.#forced.delete(id)
  }

  /** When a rejected token led to a refresh. */
  forcedAt(id: string): number | undefined {
    return this.#forced.get(id)
  }

  force(id: string): void {
    this.#forced.delete(id)
    this.#forced.set(id, this.#clock.monotonic())
    bound(this.#forced)
  }

  clear(): void {
    this.#rows.clear()
    this.#forced.clear()
  }
}

function bound(map: Map<string, unknown>): void {
  for (const oldest of map.keys()) {
    if (map.size <= MAX_ROWS) return
    map.delete(oldest)
  }
}
