import { type Claims, sourceTypeOf } from '@thv/catalog/sources/fetch/source-config'
import { ThvError } from '@thv/kernel/errors'
import { jsonEqual } from '@thv/kernel/json'
import type { ChangeConditions, ClaimsChange, NewEntry, StatusChange } from '../registry-store.ts'
import type { Draft, SourceRow } from './draft.ts'
import type { EntryRow, EntryTable, TextRow } from './entry-table.ts'

/** The writes of the managed source, each inside the transaction of its draft. */
export function publish(draft: Draft, table: EntryTable, entry: NewEntry): TextRow {
  const source = managedSource(draft, entry.source)
  const old = table.find(source.id, entry.name, entry.version)
  if (old && old.status !== 'deleted') throw new ThvError('version_exists', `version already exists: ${entry.name}@${entry.version}`)
  const claims = claimsFor(entry, table.anyVersion(source.id, entry.name))
  const at = draft.time
  const row = {
    source_id: source.id,
    name: entry.name,
    version: entry.version,
    hash: '',
    status: entry.status ?? 'active',
    status_message: entry.statusMessage ?? null,
    published_at: at,
    updated_at: at,
    status_changed_at: at,
    claims,
    revision: draft.revision,
    text: entry.text,
  }
  if (row.status !== 'deleted') count(draft, source, 1)
  if (!old) return table.insert(row)
  const revived = { ...row, id: old.id }
  table.update(revived, row.text)
  return revived
}

export function replaceDocument(draft: Draft, table: EntryTable, entry: NewEntry): TextRow {
  const source = managedSource(draft, entry.source)
  const old = table.version(source.id, entry.name, entry.version)
  if (!old) throw notFound(entry)
  claimsFor(entry, old)
  const { status = old.status } = entry
  const message = entry.status === undefined ? old.status_message : (entry.statusMessage ?? null)
  return change(draft, table, { source, old, next: { ...old, text: entry.text, status, status_message: message } })
}

export function setStatus(draft: Draft, table: EntryTable, wanted: StatusChange): TextRow[] {
  const source = managedSource(draft, wanted.source)
  const { name, version, status } = wanted
  const one = version === undefined ? undefined : table.version(source.id, name, version)
  const all = version === undefined ? table.versionsOf(source.id, name) : one ? [one] : []
  if (all.length === 0) throw notFound(wanted)
  demandConditions(wanted, all)
  const rows = version === undefined && status === 'deleted' ? all.filter((row) => row.status !== 'deleted') : all
  const message = wanted.statusMessage ?? null
  if (wanted.ifOther && rows.every((row) => row.status === status && row.status_message === message)) throw alreadySo(wanted)
  return rows.map((old) => change(draft, table, { source, old, next: { ...old, status, status_message: message } }))
}

export function setClaims(draft: Draft, table: EntryTable, wanted: ClaimsChange): void {
  const source = managedSource(draft, wanted.source)
  const rows = table.versionsOf(source.id, wanted.name)
  if (rows.length === 0) throw notFound(wanted)
  demandConditions(wanted, rows)
  const claims = wanted.claims ? JSON.stringify(wanted.claims) : null
  for (const old of rows) if (!sameClaims(old.claims, wanted.claims)) change(draft, table, { source, old, next: { ...old, claims } })
}

export function notFound({ name, version }: { name: string; version?: string }): ThvError {
  return new ThvError('not_found', `there is no server ${name}${version === undefined ? '' : ` in version ${version}`}`)
}

function alreadySo({ name, status }: StatusChange): ThvError {
  return new ThvError('bad_request', `the status of ${name} is ${status} already`)
}

function demandConditions(wanted: ChangeConditions & { name: string; version?: string }, rows: readonly EntryRow[]): void {
  if (wanted.ifLiving && rows.every(({ status }) => status === 'deleted')) throw notFound(wanted)
  demandClaims(wanted, rows[0])
}

function demandClaims({ name, ifClaims }: ChangeConditions & { name: string }, sibling: EntryRow | undefined): void {
  if (ifClaims !== undefined && !sameClaims(sibling?.claims ?? null, ifClaims ?? undefined))
    throw new ThvError('conflict', `the claims of ${name} have changed meanwhile`)
}

/** Changes a row if there is something to change, and what hangs on it. */
function change(draft: Draft, table: EntryTable, { source, old, next }: { source: SourceRow; old: TextRow; next: TextRow }): TextRow {
  const other = old.status !== next.status
  if (!other && old.text === next.text && old.status_message === next.status_message && old.claims === next.claims) return old
  const at = draft.time
  const row = { ...next, updated_at: at, status_changed_at: other ? at : old.status_changed_at, revision: draft.revision }
  table.update(row, old.text === next.text ? undefined : next.text)
  if (other) count(draft, source, Number(old.status === 'deleted') - Number(next.status === 'deleted'))
  return row
}

function managedSource(draft: Draft, name: string): SourceRow {
  const source = draft.sources.get(name)
  if (!source) throw new ThvError('not_found', `there is no source ${name}`)
  if (sourceTypeOf(source.config) !== 'managed')
    throw new ThvError('bad_request', `source ${name} is not managed: its entries come from elsewhere`)
  return source
}

function claimsFor(entry: NewEntry, sibling: EntryRow | undefined): string | null {
  const { name, claims } = entry
  demandClaims(entry, sibling)
  if (!sibling) return claims ? JSON.stringify(claims) : null
  if (claims && !sameClaims(sibling.claims, claims)) throw new ThvError('conflict', `claims mismatch: ${name} is there with other claims`)
  return sibling.claims
}

function sameClaims(stored: string | null, claims: Claims | undefined): boolean {
  return jsonEqual(stored === null ? null : JSON.parse(stored), claims ?? null)
}

function count(draft: Draft, { config: { name } }: SourceRow, more: number): void {
  const row = draft.sources.get(name)
  if (row && more !== 0) draft.sources.set(name, { ...row, sync: { ...row.sync, serverCount: row.sync.serverCount + more } })
}
