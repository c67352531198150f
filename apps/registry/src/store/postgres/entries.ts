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
const PAGE_WRITES = 1000

/** Pages by key, each a statement of its own: no cursor, no transaction and no lock lasts longer than a page. */
export function entryReads({ query }: Database): EntryReads {
  async function* entriesAfter(after: number, signal: AbortSignal): AsyncGenerator<readonly StoredEntry[]> {
    signal.throwIfAborted()
    // Newer rows are left to the next reading: otherwise a busy writer could keep this one from ever ending.
    const { data: until } = await readRevision(query)
    for (let from = after; ; ) {
      const writes = await query<WriteRow>(WRITES, [from, until, PAGE_WRITES, PAGE_ROWS])
      signal.throwIfAborted()
      yield* entriesOf(writes, signal)
      const end = writes.at(-1)
      if (!end) return
      from = end.revision
    }
  }

  /** Many small writes make one page, a large one makes many. Entries that have left their write meanwhile come with a newer one. */
  async function* entriesOf(writes: readonly WriteRow[], signal: AbortSignal): AsyncGenerator<readonly StoredEntry[]> {
    for (let at = 0; at < writes.length; ) {
      const count = fitting(writes, at)
      const ids = writes.slice(at, at + count).map(({ write }) => write)
      let last: EntryRow | undefined
      do {
        const place = last ? [last.source_id, last.name, last.version] : [0, '', '']
        const rows: EntryRow[] = await query(ENTRIES_PAGE, [
          last ? ids.slice(ids.indexOf(last.write)) : ids,
          ...place,
          PAGE_ROWS,
          PAGE_BYTES,
        ])
        signal.throwIfAborted()
        last = rows.at(-1)
        if (last) yield rows.map(storedEntry)
      } while (last)
      at += count
    }
  }

  async function* fingerprints(source: string, signal: AbortSignal, names?: readonly string[]): AsyncGenerator<readonly Fingerprint[]> {
    let last: FingerprintRow | undefined
    for (;;) {
      signal.throwIfAborted()
      const rows: FingerprintRow[] = await query(
        [
          FINGERPRINTS_OF,
          ...(last ? ['AND (e.name, e.version) > ($3, $4)'] : []),
          ...(names ? [`AND e.name = ANY($${last ? 5 : 3}::text[])`] : []),
          BY_KEY,
        ].join(' '),
        [source, FINGERPRINTS, ...(last ? [last.name, last.version] : []), ...(names ? [names] : [])],
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
export const VERSIONS_OF = `SELECT ${ENTRY_COLUMNS} FROM entry e JOIN source s ON s.id = e.source_id JOIN stamp w ON w.write = e.write
  WHERE s.name = $1 AND e.name = $2 ORDER BY e.version`

interface WriteRow {
  readonly write: number
  readonly revision: number
  /** Of a large write not all. */
  readonly entries: number
}

/** How many of the writes from this one on fit into one page; one at least. */
function fitting(writes: readonly WriteRow[], at: number): number {
  let rows = 0
  let count = 0
  for (const { entries } of writes.slice(at)) {
    rows += entries
    if (count > 0 && rows > PAGE_ROWS) break
    count++
  }
  return count
}

/** Those too of which nothing is left. Their entries are counted for one page of them, whatever the server knows about its tables. */
const WRITES = `
  SELECT w.write, w.revision, counted.entries
  FROM (SELECT write, revision FROM stamp WHERE revision > $1 AND revision <= $2 ORDER BY revision LIMIT $3) w
  CROSS JOIN LATERAL (SELECT count(*)::int AS entries FROM (SELECT FROM entry e WHERE e.write = w.write LIMIT $4 + 1) few) counted
  ORDER BY w.revision`

/**
 * `$1`: writes in order; of the first one what is behind the place `$2` to `$4`. Its write is no equality, although it could be one: before
 * the server has statistics it would take few rows for granted, and sort all of a large write for every page. For the same reason the
 * others are looked up one by one: a join would read the whole table.
 */
const ENTRIES_PAGE = `
  SELECT ${ENTRY_COLUMNS}
  FROM (
    SELECT page.*, sum(octet_length(document)) OVER (ORDER BY nth, source_id, name, version) - octet_length(document) AS before
    FROM (
      (SELECT 1 AS nth, entry.* FROM entry
       WHERE (write, source_id, name, version) > (($1::bigint[])[1], $2, $3, $4) AND write <= ($1::bigint[])[1]
       ORDER BY write, source_id, name, version LIMIT $5)
      UNION ALL
      (SELECT 1 + wanted.nth, few.* FROM unnest(($1::bigint[])[2:]) WITH ORDINALITY AS wanted (write, nth)
       CROSS JOIN LATERAL (SELECT * FROM entry WHERE entry.write = wanted.write LIMIT $5) few
       LIMIT $5)
    ) page
  ) e
  JOIN source s ON s.id = e.source_id
  JOIN stamp w ON w.write = e.write
  WHERE e.before < $6
  ORDER BY e.nth, e.source_id, e.name, e.version`

const FINGERPRINTS_OF = `SELECT e.name, e.version, e.hash, e.status FROM entry e JOIN source s ON s.id = e.source_id WHERE s.name = $1`
const BY_KEY = 'ORDER BY e.name, e.version LIMIT $2'
