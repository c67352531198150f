import type { StoreRevision } from '../registry-store.ts'
import { CHANNEL } from './change-listener.ts'
import type { Sql } from './database.ts'

/** How times are served, made of the database's clock. */
export const timeText = (time: string) => `to_char(${time} AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"')`

/** For what takes no revision. */
export const NOW_TEXT = timeText('clock_timestamp()')

/** The time of the write that is under way, later than that of every revision before. */
export interface Stamp {
  readonly now: string
}

/**
 * All who take a revision do it one after the other: what comes first is committed first, so no reader sees a revision before the ones
 * below it. Its holder keeps all others waiting: slow work is done before. Of a source, only rows that no holder of this
 * lock changes may be locked before: that it is there (`FOR KEY SHARE`), or its end.
 */
export async function lockRevision(sql: Sql): Promise<Stamp> {
  await sql('SELECT FROM revision FOR UPDATE')
  // A statement of its own: the one above may have waited, and reads its clock before it does.
  const [row] = await sql<Stamp>(
    `SELECT ${timeText("greatest(date_trunc('milliseconds', clock_timestamp()), stamped_at + interval '1 millisecond')")} AS now FROM revision`,
  )
  if (!row) throw new Error('the table of the revision is empty')
  return row
}

export async function takeRevision(sql: Sql, stamp: Stamp, kind: 'data' | 'structure'): Promise<number> {
  const [row] = await sql<{ taken: number }>(
    `UPDATE revision SET ${kind} = ${kind} + 1, stamped_at = $1::timestamptz RETURNING ${kind} AS taken, pg_notify('${CHANNEL}', '')`,
    [stamp.now],
  )
  if (!row) throw new Error('the table of the revision is empty')
  return row.taken
}

/** A write of entries: it takes a revision, and gives it and its time to all entries that have it. */
export interface Write {
  readonly write: number
  readonly revision: number
}

/** Under the lock. Gives what entries must have to be of this write. */
export async function takeWrite(sql: Sql, stamp: Stamp): Promise<Write> {
  const revision = await takeRevision(sql, stamp, 'data')
  const [row] = await sql<{ write: number }>('INSERT INTO stamp (revision, at) VALUES ($1, $2) RETURNING write', [revision, stamp.now])
  if (!row) throw new Error('no stamp was made')
  await sweepStamps(sql, revision)
  return { write: row.write, revision }
}

/** Before the lock: invisible to others until `endWrite`, and the commit. */
export async function beginWrite(sql: Sql): Promise<number> {
  const [row] = await sql<{ write: number }>('INSERT INTO stamp DEFAULT VALUES RETURNING write')
  if (!row) throw new Error('no stamp was made')
  return row.write
}

/** Under the lock. */
export async function endWrite(sql: Sql, write: number, stamp: Stamp): Promise<void> {
  const revision = await takeRevision(sql, stamp, 'data')
  await sql('UPDATE stamp SET revision = $2, at = $3 WHERE write = $1', [write, revision, stamp.now])
  await sweepStamps(sql, revision)
}

const SWEEP_EVERY = 1000

/** Entries leave a write for a newer one and never come back: when all have, its stamp is no longer needed. */
async function sweepStamps(sql: Sql, revision: number): Promise<void> {
  if (revision % SWEEP_EVERY !== 0) return
  await sql('DELETE FROM stamp WHERE revision < $1 AND NOT EXISTS (SELECT FROM entry WHERE entry.write = stamp.write)', [revision])
}

/** For changes that are no revision: how a sync goes. */
export async function notifyChange(sql: Sql): Promise<void> {
  await sql(`SELECT pg_notify('${CHANNEL}', '')`)
}

export async function readRevision(sql: Sql): Promise<StoreRevision> {
  const [row] = await sql<{ data: number; structure: number }>('SELECT data, structure FROM revision')
  if (!row) throw new Error('the table of the revision is empty')
  return { data: row.data, structure: row.structure }
}
