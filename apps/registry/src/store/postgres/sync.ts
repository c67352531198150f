import { ThvError } from '@thv/kernel/errors'
import {
  type Lease,
  type LeasedSource,
  type RegistryStore,
  type SyncOutcome,
  type SyncWritten,
  UNCHANGED_MESSAGE,
} from '../registry-store.ts'
import { CHANNEL } from './change-listener.ts'
import type { Database, Sql } from './database.ts'
import { endWrite, lockRevision, NOW_TEXT, notifyChange, readRevision, type Stamp, timeText } from './revision.ts'
import { fetchState, plainText, SOURCE_COLUMNS, type SourceRow, sourceConfig, syncStatus } from './rows.ts'
import { writeSynced } from './sync-entries.ts'

export type SyncCalls = Pick<RegistryStore, 'claimDue' | 'renewLease' | 'finishSync' | 'requestSync' | 'nextDueInMs'>

const MAX_PROBLEMS = 100

/** Leases are columns with the database's time: nothing is locked while something is fetched. */
export function syncCalls(database: Database): SyncCalls {
  return {
    claimDue: (claim) => claimDue(database, claim),
    renewLease: async (lease, leaseMs) => {
      const rows = await database.query(
        `UPDATE source SET lease_until = clock_timestamp() + ${milliseconds('$3')} WHERE name = $1 AND lease_token = $2 RETURNING id`,
        [lease.source, lease.token, leaseMs],
      )
      return rows.length === 1
    },
    finishSync: (lease, outcome) => database.transaction((sql) => finishSync(sql, lease, outcome)),
    requestSync: (source) => database.transaction((sql) => requestSync(sql, source)),
    nextDueInMs: async (except = []) => {
      const [row] = await database.query<{ wait: number | null }>(
        `SELECT extract(epoch FROM min(greatest(due_at, lease_until)) - clock_timestamp())::float8 * 1000 AS wait FROM source WHERE due_at IS NOT NULL AND name <> ALL ($1)`,
        [except],
      )
      return row?.wait === null || row === undefined ? undefined : Math.max(0, row.wait)
    },
  }
}

/** The clock of the database has gone back since: what it said then, about when it is due too, means nothing. */
const ATTEMPT_TO_COME = `due_at IS NOT NULL AND last_attempt > ${timeText("(clock_timestamp() + interval '1 minute')")}`
/** A lease lasts at most an hour. A working holder has renewed it by the new time. */
const LEASE_TOO_LONG = "lease_until > clock_timestamp() + interval '2 hours'"

async function claimDue(database: Database, claim: Parameters<RegistryStore['claimDue']>[0]): Promise<readonly LeasedSource[]> {
  if (claim.limit <= 0) return []
  // Sources that another replica is just claiming are skipped, so two never get the same and none waits.
  const rows = await database.query<ClaimedRow>(
    `WITH due AS (
       SELECT ${SOURCE_COLUMNS}, manual, due_at FROM source
       WHERE (due_at <= clock_timestamp() OR ${ATTEMPT_TO_COME}) AND (lease_until IS NULL OR lease_until <= clock_timestamp() OR ${LEASE_TOO_LONG})
         AND name <> ALL ($4)
       ORDER BY due_at, name LIMIT $3 FOR UPDATE SKIP LOCKED
     ), told AS (
       SELECT pg_notify('${CHANNEL}', '') WHERE EXISTS (SELECT FROM due)
     )
     UPDATE source SET lease_owner = $1, lease_token = gen_random_uuid()::text, lease_until = clock_timestamp() + ${milliseconds('$2')},
       manual = false, last_attempt = ${NOW_TEXT}, due_at = least(source.due_at, clock_timestamp())
     FROM due, told WHERE source.id = due.id
     RETURNING due.*, extract(epoch FROM due.due_at)::float8 AS due, source.lease_token AS token`,
    [claim.owner, claim.leaseMs, claim.limit, claim.except ?? []],
  )
  return rows
    .toSorted((a, b) => a.due - b.due || (a.name < b.name ? -1 : 1))
    .map((row) => ({
      lease: { source: row.name, owner: claim.owner, token: row.token },
      config: sourceConfig(row),
      sync: syncStatus(row, row.phase),
      state: fetchState(row),
      manual: row.manual,
    }))
}

type ClaimedRow = SourceRow & { readonly manual: boolean; readonly due: number; readonly token: string }

/**
 * Entries first, which may take long and delays no other: only the holder of the lease writes those of the source. Whether it still has it
 * is known at the end, when all others wait: then everything is committed, or nothing.
 */
async function finishSync(sql: Sql, lease: Lease, outcome: SyncOutcome): Promise<SyncWritten> {
  let written: Written = {}
  if (outcome.kind === 'changed') {
    const sourceId = await demandHeld(sql, lease, 'FOR KEY SHARE')
    const write = await writeSynced(sql, sourceId, outcome)
    written = { serverCount: await countServers(sql, sourceId), ...(write !== undefined && { write, stamp: await lockRevision(sql) }) }
  }
  const id = await demandHeld(sql, lease, 'FOR NO KEY UPDATE')
  if (written.write !== undefined && written.stamp) await endWrite(sql, written.write, written.stamp)
  const [after] = await writeOutcome(sql, id, outcome, written.serverCount)
  await notifyChange(sql)
  const { data } = await readRevision(sql)
  return { revision: data, serverCount: after?.server_count ?? 0 }
}

interface Written {
  readonly serverCount?: number
  readonly write?: number
  readonly stamp?: Stamp
}

async function demandHeld(sql: Sql, lease: Lease, lock: 'FOR KEY SHARE' | 'FOR NO KEY UPDATE'): Promise<number> {
  const [held] = await sql<{ id: number }>(`SELECT id FROM source WHERE name = $1 AND lease_token = $2 ${lock}`, [
    lease.source,
    lease.token,
  ])
  if (!held) throw new ThvError('lease_lost', `the lease on source ${lease.source} is lost`)
  return held.id
}

async function countServers(sql: Sql, sourceId: number): Promise<number> {
  const [row] = await sql<{ count: number }>("SELECT count(*) FROM entry WHERE source_id = $1 AND status <> 'deleted'", [sourceId])
  return row?.count ?? 0
}

/** A request that came while this attempt was under way stays due. */
const GIVE_BACK = `lease_owner = NULL, lease_token = NULL, lease_until = NULL,
  due_at = CASE WHEN manual THEN due_at ELSE clock_timestamp() + ${milliseconds('$2')} END`
const SUCCESS = `phase = 'complete', attempt_count = 0, last_success = ${NOW_TEXT}`

function writeOutcome(sql: Sql, id: number, outcome: SyncOutcome, serverCount = 0): Promise<{ server_count: number }[]> {
  const update = (columns: string, values: readonly unknown[]) =>
    sql<{ server_count: number }>(`UPDATE source SET ${columns}, ${GIVE_BACK} WHERE id = $1 RETURNING server_count`, [
      id,
      outcome.nextInMs,
      ...values,
    ])
  switch (outcome.kind) {
    case 'failed':
      return update("phase = 'failed', attempt_count = attempt_count + 1, message = $3", [plainText(outcome.message)])
    case 'unchanged':
      if (outcome.problems === undefined)
        return update(`${SUCCESS}, message = $3, state = $4`, [UNCHANGED_MESSAGE, JSON.stringify(outcome.state)])
      return update(`${SUCCESS}, message = $3, state = $4, problems = $5, problem_count = $6`, [
        UNCHANGED_MESSAGE,
        JSON.stringify(outcome.state),
        JSON.stringify(outcome.problems.slice(0, MAX_PROBLEMS)),
        outcome.problemCount ?? 0,
      ])
    case 'changed':
      return update(`${SUCCESS}, message = $3, state = $4, hash = $5, problems = $6, problem_count = $7, server_count = $8`, [
        plainText(outcome.message),
        JSON.stringify(outcome.state),
        plainText(outcome.hash),
        JSON.stringify(outcome.problems.slice(0, MAX_PROBLEMS)),
        outcome.problemCount,
        serverCount,
      ])
  }
}

async function requestSync(sql: Sql, source: string): Promise<void> {
  const [row] = await sql<{ id: number; type: string }>('SELECT id, type FROM source WHERE name = $1 FOR NO KEY UPDATE', [source])
  if (!row) throw new ThvError('not_found', `there is no source ${source}`)
  if (row.type === 'managed') throw new ThvError('bad_request', `source ${source} is managed: there is nothing to sync`)
  await sql('UPDATE source SET manual = true, due_at = least(due_at, clock_timestamp()) WHERE id = $1', [row.id])
  await notifyChange(sql)
}

function milliseconds(parameter: string): string {
  return `${parameter}::float8 * interval '1 millisecond'`
}
