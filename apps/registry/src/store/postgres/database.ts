import type { Socket } from 'node:net'
import { createBackoff } from '@thv/kernel/backoff'
import type { Clock } from '@thv/kernel/clock'
import { isThvError } from '@thv/kernel/errors'
import type { Logger } from '@thv/telemetry/log'
import { type ClientConfig, Pool, type PoolClient, type QueryResultRow } from 'pg'
import type { PostgresConfig } from '../../config/registry-config.ts'
import { connectionOptions, DEFAULT_LIMITS, type PostgresLimits } from './connection-options.ts'
import { isBug, isRetryable, keepsConnection, storeError, storeMessage } from './store-error.ts'

/** Runs one statement and gives its rows. */
export type Sql = <R extends QueryResultRow>(text: string, values?: readonly unknown[]) => Promise<R[]>

/** A bounded pool of connections. Whatever goes wrong comes as an error of ours; nothing of it ends the process. */
export interface Database {
  readonly query: Sql
  /** Begins, commits, and rolls back on any error. Deadlocks and the like are tried again, so `work` may run more than once. */
  transaction<T>(work: (sql: Sql) => Promise<T>): Promise<T>
  /** For connections outside the pool; another object when the way to the server is another. */
  readonly options: ClientConfig
  close(): Promise<void>
}

export interface DatabaseContext {
  readonly clock: Clock
  readonly log: Logger
  readonly limits?: Partial<PostgresLimits>
}

const ATTEMPTS = 6
const IDLE_MS = 60_000
const CLOSE_LIMIT_MS = 3000

export async function openDatabase(config: PostgresConfig, context: DatabaseContext): Promise<Database> {
  const { clock, log } = context
  const sockets = new Set<Socket>()
  const plan = await connectionOptions(config, config, {
    limits: { ...DEFAULT_LIMITS, ...context.limits },
    warn: (message) => log.warn(message),
    sockets,
  })
  const pool = new Pool({
    ...plan.options,
    // One more listens.
    max: Math.max(1, config.maxOpenConns - 1),
    min: Math.min(config.maxIdleConns, Math.max(1, config.maxOpenConns - 1)),
    idleTimeoutMillis: IDLE_MS,
    maxLifetimeSeconds: Math.ceil(config.connMaxLifetimeMs / 1000),
  })
  // An idle connection that breaks has been removed already; without a listener it would end the process.
  pool.on('error', (error) => log.debug('an idle connection to PostgreSQL ended', { error: storeMessage(error) }))
  pool.on('connect', (client) => client.on('error', () => {})) // the running statement rejects

  const withClient = async <T>(work: (client: PoolClient) => Promise<T>): Promise<T> => {
    const client = await plan.connect(({ ssl }) => {
      // The pool makes its connections with the options that it has at that moment.
      pool.options.ssl = ssl
      return pool.connect()
    })
    let broken = true
    try {
      const result = await work(client)
      broken = false
      return result
    } catch (error) {
      const reason = error instanceof Rolled ? error.cause : error
      // Errors of the work itself have been rolled back in good order.
      broken = !keepsConnection(reason) && !(error instanceof Rolled && (isThvError(reason) || isBug(reason)))
      throw reason
    } finally {
      client.release(broken)
    }
  }

  return {
    get options() {
      return plan.options
    },
    query: (text, values) => retrying(clock, () => withClient(async (client) => (await client.query(text, values && [...values])).rows)),
    transaction: (work) => retrying(clock, () => withClient((client) => runTransaction(client, work))),
    close: async () => {
      const timer = clock.setTimer(CLOSE_LIMIT_MS, () => {
        for (const socket of sockets) socket.destroy()
      })
      await pool.end()
      timer.cancel()
      for (const socket of sockets) socket.destroySoon()
    },
  }
}

/** The error of a transaction that was rolled back in good order. */
class Rolled extends Error {}

async function runTransaction<T>(client: PoolClient, work: (sql: Sql) => Promise<T>): Promise<T> {
  // Whatever the default of the database is: who has waited for a lock must see what the one before has written.
  await client.query('BEGIN ISOLATION LEVEL READ COMMITTED')
  let result: T
  try {
    result = await work(async (text, values) => (await client.query(text, values && [...values])).rows)
  } catch (error) {
    await client.query('ROLLBACK').catch((cause) => {
      throw new AggregateError([error, cause], 'the transaction could not be rolled back')
    })
    throw new Rolled('rolled back', { cause: error })
  }
  await client.query('COMMIT')
  return result
}

async function retrying<T>(clock: Clock, attempt: () => Promise<T>): Promise<T> {
  const backoff = createBackoff({ baseMs: 10, maxMs: 500 })
  for (;;) {
    try {
      return await attempt()
    } catch (error) {
      const delay = backoff.next()
      if (isBug(error)) throw error
      if (!isRetryable(error) || backoff.failures >= ATTEMPTS) throw storeError(error)
      await clock.sleep(delay)
    }
  }
}
