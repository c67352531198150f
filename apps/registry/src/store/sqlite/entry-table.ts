import type { DatabaseSync } from 'node:sqlite'
import type { EntryStatus } from '@thv/catalog/catalog-entry'
import type { Claims } from '@thv/catalog/sources/fetch/source-config'
import type { Fingerprint, StoredEntry } from '../registry-store.ts'

/** One row as SQLite gives it. */
export interface EntryRow {
  readonly id: number
  readonly source_id: number
  readonly name: string
  readonly version: string
  readonly hash: string
  readonly status: EntryStatus
  readonly status_message: string | null
  readonly published_at: string
  readonly updated_at: string
  readonly status_changed_at: string
  readonly claims: string | null
  readonly revision: number
}

export type TextRow = EntryRow & { readonly text: string }

const PAGE_ROWS = 1_000
const PAGE_CHARS = 4 * 1024 * 1024
const FINGERPRINT_ROWS = 5_000

const WITH_TEXT = 'SELECT entry.*, document.text FROM entry JOIN document ON document.id = entry.id'

/** The prepared statements on entries and their documents. Calls are synchronous and leave no cursor open. */
export class EntryTable {
  readonly #statements: ReturnType<typeof prepare>

  constructor(database: DatabaseSync) {
    this.#statements = prepare(database)
  }

  find(sourceId: number, name: string, version: string): EntryRow | undefined {
    return this.#statements.find.get(sourceId, name, version) as EntryRow | undefined
  }

  /** With its text. */
  version(sourceId: number, name: string, version: string): TextRow | undefined {
    return this.#statements.version.get(sourceId, name, version) as TextRow | undefined
  }

  /** One version, whichever: for what all of them have in common. */
  anyVersion(sourceId: number, name: string): EntryRow | undefined {
    return this.#statements.anyVersion.get(sourceId, name) as EntryRow | undefined
  }

  versionsOf(sourceId: number, name: string): TextRow[] {
    return this.#statements.versions.all(sourceId, name) as unknown as TextRow[]
  }

  insert(row: Omit<TextRow, 'id'>): TextRow {
    const { source_id, name, version, hash, status, status_message, published_at, updated_at, status_changed_at, claims, revision } = row
    const { lastInsertRowid } = this.#statements.insert.run(
      source_id,
      name,
      version,
      hash,
      status,
      status_message,
      published_at,
      updated_at,
      status_changed_at,
      claims,
      revision,
    )
    this.#statements.insertText.run(lastInsertRowid, row.text)
    return { ...row, id: Number(lastInsertRowid) }
  }

  update(row: EntryRow, text?: string): void {
    const { id, hash, status, status_message, published_at, updated_at, status_changed_at, claims, revision } = row
    this.#statements.update.run(hash, status, status_message, published_at, updated_at, status_changed_at, claims, revision, id)
    if (text !== undefined) this.#statements.updateText.run(text, id)
  }

  /** The next rows behind this place, in order of revision: at most 1,000, fewer if they are large. `end`: there are no more now. */
  pageAfter(after: { readonly revision: number; readonly id: number }): { rows: TextRow[]; end: boolean } {
    const { sameRevision, laterRevisions } = this.#statements
    const page = new Page()
    // Two questions, since SQLite would answer one about both columns by going through the whole revision for every page.
    page.fill(sameRevision.iterate(after.revision, after.id, PAGE_ROWS))
    if (!page.full) page.fill(laterRevisions.iterate(after.revision, PAGE_ROWS - page.rows.length))
    return { rows: page.rows, end: !page.full }
  }

  fingerprints(sourceId: number, after: Fingerprint | undefined): Fingerprint[] {
    const { fingerprints, firstFingerprints } = this.#statements
    const rows = after
      ? fingerprints.all(sourceId, after.name, after.version, FINGERPRINT_ROWS)
      : firstFingerprints.all(sourceId, FINGERPRINT_ROWS)
    return rows as unknown as Fingerprint[]
  }

  fingerprintsOf(sourceId: number, name: string): Fingerprint[] {
    return this.#statements.namedFingerprints.all(sourceId, name) as unknown as Fingerprint[]
  }
}

class Page {
  readonly rows: TextRow[] = []
  #chars = 0

  get full(): boolean {
    return this.rows.length >= PAGE_ROWS || this.#chars > PAGE_CHARS
  }

  fill(rows: Iterable<unknown>): void {
    for (const row of rows as Iterable<TextRow>) {
      this.rows.push(row)
      this.#chars += row.text.length
      if (this.full) return
    }
  }
}

export function storedEntry(row: TextRow, source: string): StoredEntry {
  return {
    source,
    name: row.name,
    version: row.version,
    text: row.text,
    status: row.status,
    ...(row.status_message !== null && { statusMessage: row.status_message }),
    publishedAt: row.published_at,
    updatedAt: row.updated_at,
    statusChangedAt: row.status_changed_at,
    ...(row.claims !== null && { claims: parseClaims(row.claims) }),
    revision: row.revision,
  }
}

export function parseClaims(text: string): Claims {
  return JSON.parse(text) as Claims
}

function prepare(database: DatabaseSync) {
  return {
    find: database.prepare('SELECT * FROM entry WHERE source_id = ? AND name = ? AND version = ?'),
    version: database.prepare(`${WITH_TEXT} WHERE entry.source_id = ? AND entry.name = ? AND entry.version = ?`),
    anyVersion: database.prepare('SELECT * FROM entry WHERE source_id = ? AND name = ? LIMIT 1'),
    versions: database.prepare(`${WITH_TEXT} WHERE entry.source_id = ? AND entry.name = ? ORDER BY entry.version`),
    insert: database.prepare(`
      INSERT INTO entry (source_id, name, version, hash, status, status_message, published_at, updated_at, status_changed_at, claims, revision)
      VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
    `),
    insertText: database.prepare('INSERT INTO document (id, text) VALUES (?, ?)'),
    update: database.prepare(`
      UPDATE entry SET hash = ?, status = ?, status_message = ?, published_at = ?, updated_at = ?, status_changed_at = ?, claims = ?, revision = ?
      WHERE id = ?
    `),
    updateText: database.prepare('UPDATE document SET text = ? WHERE id = ?'),
    sameRevision: database.prepare(`${WITH_TEXT} WHERE entry.revision = ? AND entry.id > ? ORDER BY entry.id LIMIT ?`),
    laterRevisions: database.prepare(`${WITH_TEXT} WHERE entry.revision > ? ORDER BY entry.revision, entry.id LIMIT ?`),
    firstFingerprints: database.prepare('SELECT name, version, hash, status FROM entry WHERE source_id = ? ORDER BY name, version LIMIT ?'),
    namedFingerprints: database.prepare('SELECT name, version, hash, status FROM entry WHERE source_id = ? AND name = ? ORDER BY version'),
    fingerprints: database.prepare(`
      SELECT name, version, hash, status FROM entry WHERE source_id = ? AND (name, version) > (?, ?) ORDER BY name, version LIMIT ?
    `),
  }
}
