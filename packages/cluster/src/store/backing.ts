import { chmodSync, closeSync, mkdirSync, openSync } from 'node:fs'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { errorMessage, ThvError } from '@thv/kernel/errors'
import { StoredObject } from './stored-object.ts'

/** Where the objects survive. */
export interface Backing {
  /** Calls once per object; returns the revision of the last write. */
  load(each: (object: StoredObject) => void): number
  /** Durable when it returns; when it throws nothing has changed. */
  write(object: StoredObject, deleted: boolean): void
  close(): void
}

/** Nothing survives. */
export function memoryBacking(): Backing {
  return { load: () => 0, write: () => undefined, close: () => undefined }
}

const SCHEMA = `
  CREATE TABLE IF NOT EXISTS objects (type TEXT, key TEXT, revision INTEGER NOT NULL, body TEXT NOT NULL, PRIMARY KEY (type, key)) WITHOUT ROWID;
  CREATE TABLE IF NOT EXISTS counter (id INTEGER PRIMARY KEY CHECK (id = 1), revision INTEGER NOT NULL);
  INSERT OR IGNORE INTO counter VALUES (1, 0);
`

/**
 * One SQLite file in `folder`, locked by the operating system for as long as this process lives: a second process is refused
 * (`data_folder_in_use`), a killed one leaves no lock behind. With WAL and synchronous=NORMAL a write survives the death of the process;
 * loss of power may take the latest writes, but never leaves a half one.
 */
export function sqliteBacking(folder: string): Backing {
  mkdirSync(folder, { recursive: true, mode: 0o700 })
  const database = openDatabase(join(folder, 'objects.sqlite'))
  const put = database.prepare('INSERT OR REPLACE INTO objects VALUES (?, ?, ?, ?)')
  const remove = database.prepare('DELETE FROM objects WHERE type = ? AND key = ?')
  const count = database.prepare('UPDATE counter SET revision = ?')
  return {
    load(each) {
      for (const row of database.prepare('SELECT type, key, revision, body FROM objects').iterate()) {
        const { type, key, revision, body } = row as { type: string; key: string; revision: number; body: string }
        each(new StoredObject({ type, key, revision }, body))
      }
      return (database.prepare('SELECT revision FROM counter').get() as { revision: number }).revision
    },
    write(object, deleted) {
      try {
        database.exec('BEGIN IMMEDIATE')
        if (deleted) remove.run(object.type, object.key)
        else put.run(object.type, object.key, object.revision, object.text)
        count.run(object.revision)
        database.exec('COMMIT')
      } catch (cause) {
        if (database.isTransaction) database.exec('ROLLBACK')
        throw new ThvError('data_folder_failed', `nothing was stored, for ${folder} cannot be written to`, { cause })
      }
    },
    close: () => database.close(),
  }
}

function openDatabase(file: string): DatabaseSync {
  let database: DatabaseSync | undefined
  try {
    makePrivate(file)
    database = new DatabaseSync(file)
    // Exclusive before WAL: then the lock is held from the first read to the end, and no shared-memory file is needed.
    database.exec('PRAGMA locking_mode = EXCLUSIVE; PRAGMA journal_mode = WAL; PRAGMA synchronous = NORMAL')
    database.exec(SCHEMA)
    return database
  } catch (cause) {
    database?.close()
    const busy = /database is locked|SQLITE_BUSY/i.test(errorMessage(cause))
    if (busy) throw new ThvError('data_folder_in_use', `${file} is in use by another process`, { cause })
    throw new ThvError('data_folder_failed', `cannot open ${file}`, { cause })
  }
}

/**
 * It holds Secrets, and SQLite gives its log the same mode. A file that is there is not opened: closing it would take away the locks
 * that this process may have on it.
 */
function makePrivate(file: string): void {
  try {
    closeSync(openSync(file, 'wx', 0o600))
  } catch (error) {
    if (!(error instanceof Error && 'code' in error && error.code === 'EEXIST')) throw error
    chmodSync(file, 0o600)
  }
}
