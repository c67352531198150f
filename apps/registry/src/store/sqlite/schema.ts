import type { DatabaseSync } from 'node:sqlite'
import { ThvError } from '@thv/kernel/errors'

/** In the head of the file: it is one of ours. */
const APPLICATION_ID = 0x54_68_76_52

/**
 * Step n leads from schema n to schema n + 1. Steps are never changed once they are released: files of every release exist.
 * Texts of documents are in a table of their own, so that comparing and counting do not read them.
 */
const STEPS: readonly string[] = [
  `
  CREATE TABLE meta (
    id INTEGER PRIMARY KEY CHECK (id = 1),
    data_revision INTEGER NOT NULL,
    structure_revision INTEGER NOT NULL,
    last_time INTEGER NOT NULL,
    last_id INTEGER NOT NULL
  ) STRICT;
  INSERT INTO meta VALUES (1, 0, 0, 0, 0);
  CREATE TABLE source (
    id INTEGER PRIMARY KEY,
    name TEXT NOT NULL UNIQUE,
    creation TEXT NOT NULL,
    config TEXT NOT NULL,
    created_at TEXT NOT NULL,
    updated_at TEXT NOT NULL,
    sync TEXT NOT NULL,
    state TEXT
  ) STRICT;
  CREATE TABLE registry (
    id INTEGER PRIMARY KEY,
    name TEXT NOT NULL UNIQUE,
    creation TEXT NOT NULL,
    position INTEGER NOT NULL,
    spec TEXT NOT NULL,
    created_at TEXT NOT NULL,
    updated_at TEXT NOT NULL
  ) STRICT;
  CREATE TABLE entry (
    id INTEGER PRIMARY KEY,
    source_id INTEGER NOT NULL REFERENCES source (id),
    name TEXT NOT NULL,
    version TEXT NOT NULL,
    hash TEXT NOT NULL,
    status TEXT NOT NULL,
    status_message TEXT,
    published_at TEXT NOT NULL,
    updated_at TEXT NOT NULL,
    status_changed_at TEXT NOT NULL,
    claims TEXT,
    revision INTEGER NOT NULL,
    UNIQUE (source_id, name, version)
  ) STRICT;
  CREATE INDEX entry_revision ON entry (revision);
  CREATE TABLE document (
    id INTEGER PRIMARY KEY REFERENCES entry (id),
    text TEXT NOT NULL
  ) STRICT;
  `,
]

export const SCHEMA_VERSION = STEPS.length

/** Reads only: nothing of a file that is not ours, or that is from a newer release, is changed. Gives the version. */
export function checkSchema(database: DatabaseSync, path: string): number {
  const version = numberOf(database, 'PRAGMA user_version')
  const owner = numberOf(database, 'PRAGMA application_id')
  const tables = numberOf(database, 'SELECT count(*) FROM sqlite_schema')
  if (owner === APPLICATION_ID ? version < 1 : tables > 0 || owner !== 0) {
    throw new ThvError('store_schema', `${path} is a database of another program; give the registry a file of its own`)
  }
  if (version > SCHEMA_VERSION) {
    throw new ThvError(
      'store_schema',
      `${path} is of schema ${version}, made by a newer release; this one knows up to ${SCHEMA_VERSION}. ` +
        'Run the newer release, or move the file away and begin with an empty one',
      { details: { version, known: SCHEMA_VERSION } },
    )
  }
  return version
}

/** One transaction for all steps: a killed process leaves the old schema. */
export function migrate(database: DatabaseSync, from: number): void {
  if (from === SCHEMA_VERSION) return
  database.exec('BEGIN IMMEDIATE')
  try {
    for (const step of STEPS.slice(from)) database.exec(step)
    database.exec(`PRAGMA application_id = ${APPLICATION_ID}; PRAGMA user_version = ${SCHEMA_VERSION}; COMMIT`)
  } catch (error) {
    if (database.isTransaction) database.exec('ROLLBACK')
    throw error
  }
}

function numberOf(database: DatabaseSync, sql: string): number {
  const [value] = Object.values(database.prepare(sql).get() ?? {})
  return Number(value)
}
