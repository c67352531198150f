import { chmodSync, closeSync, existsSync, mkdirSync, openSync } from 'node:fs'
import { dirname } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import type { Clock } from '@thv/kernel/clock'
import { isThvError, ThvError } from '@thv/kernel/errors'
import { checkSchema, migrate } from './schema.ts'

export interface DatabaseOptions {
  /** Undefined: in memory, nothing is kept. */
  readonly path?: string
  readonly clock: Clock
  /** The file grows no larger; what would not fit is refused. */
  readonly maxBytes?: number
  /** How long to wait for another process to close the file: one that is just ending. */
  readonly lockWaitMs?: number
}

const MEMORY = ':memory:'
const LOCK_WAIT_MS = 2_000
const LOCK_RETRY_MS = 50
/** Size that the log keeps after a large write; it would stay at its largest otherwise. */
const LOG_BYTES = 32 * 1024 * 1024
const CACHE_KIB = 16 * 1024

/**
 * The file belongs to this process until it is closed: a second one is refused (`conflict`), a killed one leaves no lock behind. With
 * WAL and synchronous=FULL a write that was acknowledged is there after loss of power too.
 */
export async function openDatabase(options: DatabaseOptions): Promise<DatabaseSync> {
  const { path, clock, lockWaitMs = LOCK_WAIT_MS } = options
  if (path === undefined) return openOnce(MEMORY, options)
  makePrivate(path)
  const deadline = clock.monotonic() + lockWaitMs
  for (;;) {
    try {
      return openOnce(path, options)
    } catch (error) {
      if (!isThvError(error, 'conflict') || clock.monotonic() >= deadline) throw error
      await clock.sleep(LOCK_RETRY_MS)
    }
  }
}

function openOnce(path: string, { maxBytes }: DatabaseOptions): DatabaseSync {
  let database: DatabaseSync | undefined
  try {
    database = new DatabaseSync(path, { enableForeignKeyConstraints: true, timeout: 0 })
    // Exclusive before anything is read: then the lock is held from the first read to the end, and no shared memory is needed.
    database.exec('PRAGMA locking_mode = EXCLUSIVE')
    const version = checkSchema(database, path)
    if (path !== MEMORY) for (const name of [path, `${path}-wal`]) if (existsSync(name)) chmodSync(name, 0o600)
    database.exec(`
      PRAGMA journal_mode = WAL;
      PRAGMA synchronous = FULL;
      PRAGMA busy_timeout = 5000;
      PRAGMA journal_size_limit = ${LOG_BYTES};
      PRAGMA cache_size = -${CACHE_KIB};
      PRAGMA temp_store = MEMORY;
    `)
    migrate(database, version)
    if (maxBytes !== undefined) database.exec(`PRAGMA max_page_count = ${Math.max(1, Math.floor(maxBytes / pageSize(database)))}`)
    return database
  } catch (error) {
    database?.close()
    throw storeError(path, error)
  }
}

const BUSY = 5
const CORRUPT = 11
const CANNOT_OPEN = 14
const NOT_A_DATABASE = 26

/** SQLite's own errors become ours, with the path; everything else is passed on as it is. */
export function storeError(path: string, error: unknown): unknown {
  if (!isSqliteError(error)) return error
  const primary = error.errcode & 0xff // the rest tells more precisely what went wrong
  if (primary === BUSY) {
    return new ThvError('conflict', `${path} is in use by another process; only one may use it. Several replicas need PostgreSQL`, {
      cause: error,
    })
  }
  const what = {
    [CORRUPT]: `${path} is damaged; it was left as it is. Restore a copy, or move it away: all but managed entries is fetched again`,
    [NOT_A_DATABASE]: `${path} is not a database; it was left as it is. Give the registry another file`,
    [CANNOT_OPEN]: `${path} cannot be opened; its folder must exist and be writable`,
  }[primary]
  return new ThvError('store_unavailable', what ?? `the database ${path} cannot be read or written`, { cause: error })
}

function isSqliteError(error: unknown): error is Error & { errcode: number } {
  return error instanceof Error && 'errcode' in error && typeof error.errcode === 'number'
}

function pageSize(database: DatabaseSync): number {
  const row = database.prepare('PRAGMA page_size').get()
  return Number(row?.['page_size'])
}

/**
 * Makes a file that only its owner can read. One that is there is not opened: closing it would take away the locks that this process may
 * have on it.
 */
function makePrivate(path: string): void {
  try {
    mkdirSync(dirname(path), { recursive: true, mode: 0o700 })
    closeSync(openSync(path, 'wx', 0o600))
  } catch (error) {
    if (error instanceof Error && 'code' in error && error.code === 'EEXIST') return
    throw new ThvError('store_unavailable', `${path} cannot be made`, { cause: error })
  }
}
