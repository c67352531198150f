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
 * All who take a revision do it one after the other: what comes first is committed first, so nobody sees a revision before the ones
 * below it. To be called before any other row is locked, which also makes deadlocks impossible.
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

/** For changes that are no revision: how a sync goes. */
export async function notifyChange(sql: Sql): Promise<void> {
  await sql(`SELECT pg_notify('${CHANNEL}', '')`)
}

export async function readRevision(sql: Sql): Promise<StoreRevision> {
  const [row] = await sql<{ data: number; structure: number }>('SELECT data, structure FROM revision')
  if (!row) throw new Error('the table of the revision is empty')
  return { data: row.data, structure: row.structure }
}
