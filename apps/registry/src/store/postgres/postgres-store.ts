import { type Clock, systemClock } from '@thv/kernel/clock'
import { abortable } from '@thv/kernel/deadline'
import { createLogger, type Logger } from '@thv/telemetry/log'
import type { PostgresConfig } from '../../config/registry-config.ts'
import type { RegistryStore } from '../registry-store.ts'
import { listenForChanges } from './change-listener.ts'
import { configuredCalls } from './configured.ts'
import type { PostgresLimits } from './connection-options.ts'
import { type Database, openDatabase } from './database.ts'
import { entryReads } from './entries.ts'
import { managedCalls } from './managed.ts'
import { demandCurrent, migrateUp, readState } from './migrate.ts'
import { readRevision } from './revision.ts'
import { storeError } from './store-error.ts'
import { syncCalls } from './sync.ts'

export interface PostgresStoreOptions {
  readonly clock?: Clock
  readonly log?: Logger
  /** Bring an older schema up to date first, as the migration user. On unless told otherwise. */
  readonly migrate?: boolean
  readonly limits?: Partial<PostgresLimits>
}

/**
 * Rejects with `store_unavailable` while the server cannot be reached, and with `store_schema` if the schema is not one that this
 * program knows. Once open it lives through restarts of the server: calls fail meanwhile, and work again by themselves.
 */
export async function openPostgresStore(config: PostgresConfig, options: PostgresStoreOptions = {}): Promise<RegistryStore> {
  const { clock = systemClock, log = createLogger(), limits = {} } = options
  const database = await openDatabase(config, { clock, log, limits })
  try {
    await prepareSchema(database, config, { ...options, clock, log })
  } catch (error) {
    await database.close()
    throw storeError(error)
  }
  const changes = listenForChanges({ connection: () => database.options, clock, log })
  let closed: Promise<void> | undefined
  const close = async () => {
    await changes.close()
    await database.close()
  }
  return {
    kind: 'postgres',
    revision: () => readRevision(database.query),
    onChange: changes.onChange,
    ping: async (signal) => void (await abortable(database.query('SELECT FROM revision'), signal)),
    ...configuredCalls(database),
    ...entryReads(database),
    ...managedCalls(database),
    ...syncCalls(database),
    [Symbol.asyncDispose]: () => {
      closed ??= close()
      return closed
    },
  }
}

/** The migration user is needed only when there is something to migrate. */
async function prepareSchema(database: Database, config: PostgresConfig, options: PostgresStoreOptions): Promise<void> {
  const state = await readState(database.query)
  if (options.migrate === false || state.dirty || state.version >= state.latest) demandCurrent(state)
  else await migrateUp(config, options)
  await readRevision(database.query) // says at once if a right is missing
}
