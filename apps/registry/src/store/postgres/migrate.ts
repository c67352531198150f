import type { Socket } from 'node:net'
import { createBackoff } from '@thv/kernel/backoff'
import { type Clock, systemClock } from '@thv/kernel/clock'
import { ThvError } from '@thv/kernel/errors'
import { createLogger, type Logger } from '@thv/telemetry/log'
import { Client, type ClientConfig } from 'pg'
import type { PostgresConfig } from '../../config/registry-config.ts'
import { connectionOptions, DEFAULT_LIMITS, migrationLogin } from './connection-options.ts'
import type { Sql } from './database.ts'
import { type Migration, migrations as ours } from './migrations.ts'
import { ensureServerRole, revokeServerRole } from './server-role.ts'
import { storeError } from './store-error.ts'

export interface MigrateOptions {
  readonly log?: Logger
  readonly clock?: Clock
  /** For tests. */
  readonly migrations?: readonly Migration[]
  /** At most so many upwards; all that are missing unless given. */
  readonly steps?: number
  /** How long another process that migrates is waited for. */
  readonly lockLimitMs?: number
}

/** `version` 0: an empty database. `dirty`: a step failed half-way, and nothing is done before a person has looked. */
export interface SchemaState {
  readonly version: number
  readonly dirty: boolean
  /** The one this program needs. */
  readonly latest: number
}

export interface Migrated {
  readonly from: number
  readonly to: number
}

/** Of one step; on large tables it may take its time. */
const STEP_LIMIT_MS = 600_000
const LOCK_LIMIT_MS = 120_000
const CLOSE_LIMIT_MS = 3000
/** Of PostgreSQL's advisory locks, which are per database. Any unused number. */
const LOCK_KEY = 7_468_762_210

/** Applies what is pending, as the migration user. Any number of processes may do it at once: one does it, the others find it done. */
export function migrateUp(config: PostgresConfig, options: MigrateOptions = {}): Promise<Migrated> {
  return withMigrationSession(config, options, async ({ client, state, steps, log }) => {
    demandKnown(state)
    const target = Math.min(state.latest, state.version + (options.steps ?? state.latest))
    for (const step of steps.slice(state.version, target)) {
      log.info('migrating the database up', { version: step.version, name: step.name })
      await applyStep(client, step, 'up')
    }
    await ensureServerRole(client, config.user, log)
    return { from: state.version, to: target }
  })
}

/** Takes the last `count` steps back. Their data are lost. */
export function migrateDown(config: PostgresConfig, count: number, options: MigrateOptions = {}): Promise<Migrated> {
  if (!Number.isInteger(count) || count < 1) throw new ThvError('usage', 'the number of steps down must be 1 or more')
  return withMigrationSession(config, options, async ({ client, state, steps, log }) => {
    demandKnown(state)
    const undone = steps.slice(Math.max(0, state.version - count), state.version).reverse()
    for (const step of undone) {
      log.info('migrating the database down', { version: step.version, name: step.name })
      await applyStep(client, step, 'down')
    }
    const to = state.version - undone.length
    if (to === 0) await revokeServerRole(client)
    return { from: state.version, to }
  })
}

export function schemaState(config: PostgresConfig, options: MigrateOptions = {}): Promise<SchemaState> {
  return withClient(config, options, async (client) => readState(sqlOf(client), latestOf(options.migrations ?? ours)))
}

/** Throws `store_schema` unless this program can work with the schema. */
export function demandCurrent(state: SchemaState): void {
  demandKnown(state)
  if (state.version < state.latest)
    throw new ThvError(
      'store_schema',
      `the database is at version ${state.version}, this program needs ${state.latest}: run \`migrate up\``,
    )
}

/** For any connection that can read. */
export async function readState(sql: Sql, latest = latestOf(ours)): Promise<SchemaState> {
  const [table] = await sql<{ present: boolean }>("SELECT to_regclass('schema_migrations') IS NOT NULL AS present")
  if (!table?.present) return { version: 0, dirty: false, latest }
  const [row] = await sql<{ version: number; dirty: boolean }>('SELECT version, dirty FROM schema_migrations')
  return { version: row?.version ?? 0, dirty: row?.dirty ?? false, latest }
}

function demandKnown({ version, dirty, latest }: SchemaState): void {
  if (dirty)
    throw new ThvError(
      'store_schema',
      `migration ${version} of the database failed half-way: repair the schema by hand, then set the row of schema_migrations to the version it is at and dirty to false`,
    )
  if (version > latest)
    throw new ThvError(
      'store_schema',
      `the database is at version ${version}, which this program does not know (it knows ${latest}): use the newer program, or its \`migrate down\``,
    )
}

interface MigrationSession {
  readonly client: Client
  readonly state: SchemaState
  readonly steps: readonly Migration[]
  readonly log: Logger
}

async function withMigrationSession<T>(
  config: PostgresConfig,
  options: MigrateOptions,
  work: (session: MigrationSession) => Promise<T>,
): Promise<T> {
  const { log = createLogger(), migrations: steps = ours } = options
  return await withClient(config, options, async (client) => {
    await takeLock(client, options)
    await client.query('CREATE TABLE IF NOT EXISTS schema_migrations (version bigint PRIMARY KEY, dirty boolean NOT NULL)')
    return await work({ client, steps, log, state: await readState(sqlOf(client), latestOf(steps)) })
  })
}

/** The lock ends with the connection. */
async function takeLock(client: Client, { clock = systemClock, lockLimitMs = LOCK_LIMIT_MS }: MigrateOptions): Promise<void> {
  const deadline = clock.monotonic() + lockLimitMs
  const backoff = createBackoff({ baseMs: 50, maxMs: 1000 })
  for (;;) {
    const { rows } = await client.query<{ taken: boolean }>('SELECT pg_try_advisory_lock($1) AS taken', [LOCK_KEY])
    if (rows[0]?.taken) return
    if (clock.monotonic() > deadline)
      throw new ThvError('store_unavailable', `another process has been migrating the database for ${Math.round(lockLimitMs / 1000)} s`)
    await clock.sleep(backoff.next())
  }
}

async function applyStep(client: Client, step: Migration, direction: 'up' | 'down'): Promise<void> {
  const target = direction === 'up' ? step.version : step.version - 1
  const setVersion = async (version: number, dirty: boolean) => {
    await client.query('DELETE FROM schema_migrations')
    await client.query('INSERT INTO schema_migrations (version, dirty) VALUES ($1, $2)', [version, dirty])
  }
  try {
    if (step.outsideTransaction) {
      await inTransaction(client, () => setVersion(step.version, true))
      await client.query(step[direction])
      await inTransaction(client, () => setVersion(target, false))
    } else {
      await inTransaction(client, async () => {
        await client.query(step[direction])
        await setVersion(target, false)
      })
    }
  } catch (error) {
    const outcome = step.outsideTransaction ? 'it is marked as dirty' : 'nothing of it was done'
    const { code, message } = storeError(error)
    throw new ThvError(
      code === 'store_unavailable' ? code : 'store_schema',
      `migration ${step.version} (${step.name}) ${direction} failed, ${outcome}: ${message}`,
      {
        cause: error,
      },
    )
  }
}

async function inTransaction(client: Client, work: () => Promise<void>): Promise<void> {
  await client.query('BEGIN')
  try {
    await work()
    await client.query('COMMIT')
  } catch (error) {
    await client.query('ROLLBACK').catch(() => {}) // the connection is closed in any case, and the first error says more
    throw error
  }
}

async function withClient<T>(
  config: PostgresConfig,
  { log = createLogger() }: MigrateOptions,
  work: (client: Client) => Promise<T>,
): Promise<T> {
  const limits = { ...DEFAULT_LIMITS, statementMs: STEP_LIMIT_MS, answerMs: STEP_LIMIT_MS + 5000 }
  const sockets = new Set<Socket>()
  const plan = await connectionOptions(config, migrationLogin(config), { limits, warn: (message) => log.warn(message), sockets })
  let client: Client | undefined
  try {
    client = await plan.connect(connected)
    return await work(client)
  } catch (error) {
    throw storeError(error)
  } finally {
    // A server that is silent must not keep us.
    const timer = systemClock.setTimer(CLOSE_LIMIT_MS, () => {
      for (const socket of sockets) socket.destroy()
    })
    await client?.end().catch(() => {}) // the work is done or has failed already
    timer.cancel()
  }
}

async function connected(options: ClientConfig): Promise<Client> {
  const client = new Client(options)
  client.on('error', () => {}) // the running statement rejects
  try {
    await client.connect()
    return client
  } catch (error) {
    client.end().catch(() => {}) // it never began
    throw error
  }
}

function sqlOf(client: Client): Sql {
  return async (text, values) => (await client.query(text, values && [...values])).rows
}

function latestOf(steps: readonly Migration[]): number {
  return steps.at(-1)?.version ?? 0
}
