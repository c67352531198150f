import type { SyncedEntry, SyncOutcome } from '../registry-store.ts'
import type { Sql } from './database.ts'
import { beginWrite } from './revision.ts'
import { plainText } from './rows.ts'

type Changed = Extract<SyncOutcome, { kind: 'changed' }>

/** Of one statement. Documents may be large, so it ends after so many characters too. */
const CHUNK_ROWS = 1000
const CHUNK_CHARACTERS = 4 * 1024 * 1024

/** Writes what differs, before any lock. Gives the write that must take a revision then; undefined: nothing does. */
export async function writeSynced(sql: Sql, sourceId: number, outcome: Changed): Promise<number | undefined> {
  if (outcome.upserts.length + outcome.gone.length === 0) return undefined
  const write = await beginWrite(sql)
  let written = 0
  for (const chunk of chunks(outcome.upserts)) written += await upsert(sql, [sourceId, write], chunk)
  for (let at = 0; at < outcome.gone.length; at += CHUNK_ROWS * 10) {
    const gone = outcome.gone.slice(at, at + CHUNK_ROWS * 10)
    const rows = await sql(BURY, [sourceId, write, gone.map(({ name }) => name), gone.map(({ version }) => version)])
    written += rows.length
  }
  if (written > 0) return write
  await sql('DELETE FROM stamp WHERE write = $1', [write])
  return undefined
}

/** As one JSON text: Node makes it several times faster than an array for PostgreSQL, with its own escapes. */
async function upsert(sql: Sql, fixed: readonly unknown[], chunk: readonly SyncedEntry[]): Promise<number> {
  const rows = chunk.map(({ name, version, text, hash, status, statusMessage, publishedAt, claims }) => ({
    name,
    version,
    document: text.toWellFormed(),
    hash,
    status,
    status_message: statusMessage === undefined ? null : plainText(statusMessage),
    published_at: publishedAt ?? null,
    claims: claims ? JSON.stringify(claims) : null,
    keep_claims: claims === undefined,
  }))
  return (await sql(UPSERT, [...fixed, JSON.stringify(rows)])).length
}

/** The time of publication is the origin's, else that of the row that is there, else that of this write: hence the join. */
const UPSERT = `
  INSERT INTO entry AS e (source_id, name, version, document, hash, status, status_message, published_at, status_changed_at, claims, write)
  SELECT $1, u.name, u.version, u.document, u.hash, u.status, u.status_message, coalesce(u.published_at, old.published_at, w.at),
    CASE WHEN old.status = u.status THEN coalesce(old.status_changed_at, w.at) END,
    CASE WHEN u.keep_claims THEN old.claims ELSE u.claims END, $2
  FROM json_to_recordset($3)
    AS u (name text, version text, document text, hash text, status text, status_message text, published_at text, claims text,
      keep_claims boolean)
  LEFT JOIN entry old ON old.source_id = $1 AND old.name = u.name AND old.version = u.version
  LEFT JOIN stamp w ON w.write = old.write
  WHERE old.source_id IS NULL OR old.hash <> u.hash OR old.status <> u.status
  ON CONFLICT (source_id, name, version) DO UPDATE SET document = excluded.document, hash = excluded.hash, status = excluded.status,
    status_message = excluded.status_message, published_at = excluded.published_at, status_changed_at = excluded.status_changed_at,
    claims = excluded.claims, write = excluded.write
  RETURNING 1`

const BURY = `
  UPDATE entry SET status = 'deleted', status_message = NULL, published_at = coalesce(entry.published_at, w.at), status_changed_at = NULL,
    write = $2
  FROM unnest($3::text[], $4::text[]) AS gone (name, version), stamp w
  WHERE entry.source_id = $1 AND entry.name = gone.name AND entry.version = gone.version AND entry.status <> 'deleted'
    AND w.write = entry.write
  RETURNING 1`

function* chunks(entries: readonly SyncedEntry[]): Generator<SyncedEntry[]> {
  let chunk: SyncedEntry[] = []
  let characters = 0
  for (const entry of entries) {
    if (chunk.length === CHUNK_ROWS || (chunk.length > 0 && characters + entry.text.length > CHUNK_CHARACTERS)) {
      yield chunk
      chunk = []
      characters = 0
    }
    chunk.push(entry)
    characters += entry.text.length
  }
  if (chunk.length > 0) yield chunk
}
