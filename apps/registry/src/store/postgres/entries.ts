import type { EntryStatus } from '@thv/catalog/catalog-entry'
import type { Fingerprint, RegistryStore, StoredEntry } from '../registry-store.ts'
import type { Database } from './database.ts'
import { readRevision } from './revision.ts'
import { ENTRY_COLUMNS, type EntryRow, storedEntry } from './rows.ts'

export type EntryReads = Pick<RegistryStore, 'entriesAfter' | 'fingerprints' | 'versionsOf'>

/** Of one page. Documents may be large, so a page ends after so many bytes too. */
const PAGE_ROWS = 2000
const PAGE_BYTES = 8 * 1024 * 1024
const FINGERPRINTS = 10_000

/** Pages by key, each a statement of its own: no cursor, no transaction and no lock lasts longer than a page. */
export function entryReads({ query }: Database): EntryReads {
  async function* entriesAfter(after: number, signal: AbortSignal): AsyncGenerator<readonly StoredEntry[]> {
    signal.throwIfAborted()
    // What is newer is left to the next reading: otherwise a busy writer could keep this one from ever ending.
    const { data: until } = await readRevision(query)
    let last: readonly unknown[] = [after, Number.MAX_SAFE_INTEGER, '', '']
    for (;;) {
      signal.throwIfAborted()
      const rows = await query<EntryRow>(ENTRIES_PAGE, [...last, PAGE_ROWS, PAGE_BYTES, until])
      signal.throwIfAborted()
      const end = rows.at(-1)
      if (!end) return
      yield rows.map(storedEntry)
      last = [end.revision, end.source_id, end.name, end.version]
    }
  }

  async function* fingerprints(source: string, signal: AbortSignal): AsyncGenerator<readonly Fingerprint[]> {
    let last: FingerprintRow | undefined
    for (;;) {
      signal.throwIfAborted()
      const rows: FingerprintRow[] = await query(
        last ? `${FINGERPRINTS_OF} AND (e.name, e.version) > ($3, $4) ${BY_KEY}` : `${FINGERPRINTS_OF} ${BY_KEY}`,
        [source, FINGERPRINTS, ...(last ? [last.name, last.version] : [])],
      )
      signal.throwIfAborted()
      last = rows.at(-1)
      if (!last) return
      yield rows
    }
  }

  return {
    entriesAfter,
    fingerprints,
    versionsOf: async (source, name) => (await query<EntryRow>(VERSIONS_OF, [source, name])).map(storedEntry),
  }
}

type FingerprintRow = { name: string; version: string; hash: string; status: EntryStatus }

/** `$1`: source, `$2`: name. */
export const VERSIONS_OF = `SELECT ${ENTRY_COLUMNS} FROM entry e JOIN source s ON s.id = e.source_id
  WHERE s.name = $1 AND e.name = $2 ORDER BY e.version`

const ENTRIES_PAGE = `
  SELECT ${ENTRY_COLUMNS}
  FROM (
    SELECT page.*, sum(octet_length(document)) OVER (ORDER BY revision, source_id, name, version) - octet_length(document) AS before
    FROM (
      SELECT * FROM entry WHERE (revision, source_id, name, version) > ($1, $2, $3, $4) AND revision <= $7
      ORDER BY revision, source_id, name, version LIMIT $5
    ) page
  ) e
  JOIN source s ON s.id = e.source_id
  WHERE e.before < $6
  ORDER BY e.revision, e.source_id, e.name, e.version`

const FINGERPRINTS_OF = `SELECT e.name, e.version, e.hash, e.status FROM entry e JOIN source s ON s.id = e.source_id WHERE s.name = $1`
const BY_KEY = 'ORDER BY e.name, e.version LIMIT $2'
