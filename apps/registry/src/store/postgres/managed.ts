import type { Claims } from '@thv/catalog/sources/fetch/source-config'
import { ThvError } from '@thv/kernel/errors'
import { jsonEqual } from '@thv/kernel/json'
import type { ChangeConditions, ClaimsChange, NewEntry, RegistryStore, StatusChange, StoredEntry } from '../registry-store.ts'
import type { Database, Sql } from './database.ts'
import { VERSIONS_OF } from './entries.ts'
import { lockRevision, type Stamp, takeWrite } from './revision.ts'
import { claimsText, type EntryRow, plainText, storedEntry } from './rows.ts'

export type ManagedCalls = Pick<RegistryStore, 'publish' | 'replaceDocument' | 'setStatus' | 'claimsOf' | 'setClaims'>

/** One transaction each, under the lock of the revision: rows that are read here cannot change before they are written. */
export function managedCalls(database: Database): ManagedCalls {
  const change = <T>(key: { source: string; name: string }, work: (session: Session) => Promise<T>): Promise<T> =>
    database.transaction(async (sql) => {
      const stamp = await lockRevision(sql)
      const sourceId = await managedId(sql, key.source)
      return await work({ sql, stamp, sourceId, source: key.source, name: key.name, versions: await readVersions(sql, key) })
    })
  return {
    publish: (entry) => change(entry, (session) => publish(session, entry)),
    replaceDocument: (entry) => change(entry, (session) => replaceDocument(session, entry)),
    setStatus: (wanted) => change(wanted, (session) => setStatus(session, wanted)),
    setClaims: (wanted) => change(wanted, (session) => setClaims(session, wanted)),
    claimsOf: async (source, name) => {
      const [version] = await readVersions(database.query, { source, name })
      if (!version) throw noServer(source, name)
      return version.claims
    },
  }
}

interface Session {
  readonly sql: Sql
  readonly stamp: Stamp
  readonly sourceId: number
  readonly source: string
  readonly name: string
  readonly versions: readonly StoredEntry[]
}

async function publish(session: Session, entry: NewEntry): Promise<StoredEntry> {
  const { sql, stamp, versions } = session
  const old = versions.find(({ version }) => version === entry.version)
  if (old && old.status !== 'deleted')
    throw new ThvError('version_exists', `version ${entry.version} of ${entry.name} is published already`)
  const claims = claimsFor(entry, versions)
  const { write, revision } = await takeWrite(sql, stamp)
  const row: StoredEntry = {
    source: entry.source,
    name: entry.name,
    version: entry.version,
    text: entry.text,
    status: entry.status ?? 'active',
    ...messageOf(entry.statusMessage),
    publishedAt: stamp.now,
    updatedAt: stamp.now,
    statusChangedAt: stamp.now,
    ...claims,
    revision,
  }
  await writeEntry(session, row, write)
  await countServers(session)
  return row
}

async function replaceDocument(session: Session, entry: NewEntry): Promise<StoredEntry> {
  const { sql, stamp, versions } = session
  const old = versions.find(({ version }) => version === entry.version)
  if (!old) throw noVersion(entry)
  claimsFor(entry, versions)
  const { statusMessage: _, ...kept } = old
  const next = entry.status === undefined ? old : { ...kept, status: entry.status, ...messageOf(entry.statusMessage) }
  if (entry.text === old.text && jsonEqual(next, old)) return old
  const { write, revision } = await takeWrite(sql, stamp)
  const row: StoredEntry = {
    ...next,
    text: entry.text,
    updatedAt: stamp.now,
    statusChangedAt: next.status === old.status ? old.statusChangedAt : stamp.now,
    revision,
  }
  await writeEntry(session, row, write)
  await countServers(session)
  return row
}

async function setStatus(session: Session, wanted: StatusChange): Promise<readonly StoredEntry[]> {
  const { sql, stamp, sourceId, source, name, versions } = session
  if (versions.length === 0) throw noServer(source, name)
  const { statusMessage } = messageOf(wanted.statusMessage)
  const isMeant = (row: StoredEntry) =>
    wanted.version === undefined ? wanted.status !== 'deleted' || row.status !== 'deleted' : row.version === wanted.version
  const meant = versions.filter(isMeant)
  if (wanted.version !== undefined && meant.length === 0) throw noVersion({ ...wanted, version: wanted.version })
  demandConditions(wanted, wanted.version === undefined ? versions : meant)
  const others = meant.filter((row) => row.status !== wanted.status || row.statusMessage !== statusMessage)
  if (others.length === 0 && wanted.ifOther) throw new ThvError('bad_request', `the status of ${name} is ${wanted.status} already`)
  if (others.length === 0) return meant
  const { write } = await takeWrite(sql, stamp)
  await sql(
    `UPDATE entry SET status = $3, status_message = $4, write = $6,
       status_changed_at = CASE WHEN status = $3 THEN status_changed_at ELSE $5 END
     WHERE source_id = $1 AND name = $2 AND version = ANY ($7)`,
    [sourceId, name, wanted.status, statusMessage ?? null, stamp.now, write, others.map(({ version }) => version)],
  )
  await countServers(session)
  return (await readVersions(sql, { source, name })).filter(({ version }) => meant.some((row) => row.version === version))
}

async function setClaims(session: Session, wanted: ClaimsChange): Promise<void> {
  const { claims } = wanted
  const { sql, stamp, sourceId, source, name, versions } = session
  if (versions.length === 0) throw noServer(source, name)
  demandConditions(wanted, versions)
  if (versions.every((row) => jsonEqual(row.claims, claims))) return
  const { write } = await takeWrite(sql, stamp)
  await sql('UPDATE entry SET claims = $3, write = $4 WHERE source_id = $1 AND name = $2', [sourceId, name, claimsText(claims), write])
}

/** All versions of a name have the same. */
function claimsFor(entry: NewEntry, versions: readonly StoredEntry[]): { claims?: Claims } {
  const [sibling] = versions
  demandClaims(entry, sibling)
  if (sibling && entry.claims && !jsonEqual(sibling.claims, entry.claims))
    throw new ThvError('conflict', `the versions of ${entry.name} that are there have other claims`)
  const claims = sibling ? sibling.claims : entry.claims
  return claims === undefined ? {} : { claims }
}

function demandConditions(wanted: Change, rows: readonly StoredEntry[]): void {
  if (wanted.ifLiving && rows.every(({ status }) => status === 'deleted')) throw noServer(wanted.source, wanted.name)
  demandClaims(wanted, rows[0])
}

type Change = ChangeConditions & { readonly source: string; readonly name: string }

function demandClaims({ name, ifClaims }: Change, sibling: StoredEntry | undefined): void {
  if (ifClaims !== undefined && !jsonEqual(sibling?.claims ?? null, ifClaims))
    throw new ThvError('conflict', `the claims of ${name} have changed meanwhile`)
}

async function writeEntry({ sql, sourceId }: Session, row: StoredEntry, write: number): Promise<void> {
  await sql(
    `INSERT INTO entry (source_id, name, version, document, hash, status, status_message, published_at, status_changed_at, claims, write)
     VALUES ($1, $2, $3, $4, '', $5, $6, $7, $8, $9, $10)
     ON CONFLICT (source_id, name, version) DO UPDATE SET document = excluded.document, status = excluded.status,
       status_message = excluded.status_message, published_at = excluded.published_at,
       status_changed_at = excluded.status_changed_at, claims = excluded.claims, write = excluded.write`,
    [
      sourceId,
      row.name,
      row.version,
      row.text,
      row.status,
      row.statusMessage ?? null,
      row.publishedAt,
      row.statusChangedAt,
      claimsText(row.claims),
      write,
    ],
  )
}

async function countServers({ sql, sourceId }: Session): Promise<void> {
  await sql("UPDATE source SET server_count = (SELECT count(*) FROM entry WHERE source_id = $1 AND status <> 'deleted') WHERE id = $1", [
    sourceId,
  ])
}

async function managedId(sql: Sql, source: string): Promise<number> {
  const [row] = await sql<{ id: number; type: string }>('SELECT id, type FROM source WHERE name = $1', [source])
  if (!row) throw new ThvError('not_found', `there is no source ${source}`)
  if (row.type !== 'managed') throw new ThvError('bad_request', `source ${source} is not managed: its entries come from elsewhere`)
  return row.id
}

async function readVersions(sql: Sql, { source, name }: { source: string; name: string }): Promise<StoredEntry[]> {
  return (await sql<EntryRow>(VERSIONS_OF, [source, name])).map(storedEntry)
}

function messageOf(message: string | undefined): { statusMessage?: string } {
  return message === undefined ? {} : { statusMessage: plainText(message) }
}

function noServer(source: string, name: string): ThvError {
  return new ThvError('not_found', `source ${source} has no server ${name}`)
}

function noVersion({ source, name, version }: { source: string; name: string; version: string }): ThvError {
  return new ThvError('not_found', `source ${source} has no version ${version} of ${name}`)
}
