import type { FetchProblem, FetchState } from '@thv/catalog/sources/fetch/registry-handler'
import { type Claims, type SourceConfig, sourceTypeOf } from '@thv/catalog/sources/fetch/source-config'
import type { Creation, RegistryRecord, SourceRecord, StoredEntry, SyncPhase, SyncStatus } from '../registry-store.ts'

export interface SourceRow {
  readonly id: number
  readonly name: string
  readonly config: string
  readonly creation: Creation
  readonly created_at: string
  readonly updated_at: string
  readonly phase: Exclude<SyncPhase, 'syncing'>
  readonly attempt_count: number
  readonly last_attempt: string | null
  readonly last_success: string | null
  readonly server_count: number
  readonly message: string
  readonly problems: string
  readonly problem_count: number
  readonly hash: string | null
  readonly state: string | null
  readonly leased: boolean
}

export const SOURCE_COLUMNS = `id, name, config, creation, created_at, updated_at, phase, attempt_count, last_attempt, last_success,
  server_count, message, problems, problem_count, hash, state, coalesce(lease_until > clock_timestamp(), false) AS leased`

export function sourceRecord(row: SourceRow): SourceRecord {
  return {
    id: row.id,
    config: sourceConfig(row),
    creation: row.creation,
    createdAt: row.created_at,
    updatedAt: row.updated_at,
    sync: syncStatus(row, row.leased ? 'syncing' : row.phase),
  }
}

export function sourceConfig(row: Pick<SourceRow, 'config'>): SourceConfig {
  return JSON.parse(row.config) as SourceConfig
}

export function syncStatus(row: SourceRow, phase: SyncPhase): SyncStatus {
  return {
    phase,
    attemptCount: row.attempt_count,
    ...(row.last_attempt !== null && { lastAttempt: row.last_attempt }),
    ...(row.last_success !== null && { lastSuccess: row.last_success }),
    serverCount: row.server_count,
    message: row.message,
    problems: JSON.parse(row.problems) as FetchProblem[],
    problemCount: row.problem_count,
    ...(row.hash !== null && { hash: row.hash }),
  }
}

export function fetchState(row: Pick<SourceRow, 'state'>): FetchState | undefined {
  return row.state === null ? undefined : (JSON.parse(row.state) as FetchState)
}

export function isManaged(config: SourceConfig): boolean {
  return sourceTypeOf(config) === 'managed'
}

export interface RegistryRow {
  readonly name: string
  readonly creation: Creation
  readonly position: number
  readonly sources: readonly string[]
  readonly claims: string | null
  readonly created_at: string
  readonly updated_at: string
}

export function registryRecord(row: RegistryRow): RegistryRecord {
  return {
    spec: { name: row.name, sources: row.sources, ...claimsOfRow(row) },
    creation: row.creation,
    createdAt: row.created_at,
    updatedAt: row.updated_at,
  }
}

export interface EntryRow {
  readonly source: string
  readonly source_id: number
  readonly name: string
  readonly version: string
  readonly document: string
  readonly status: StoredEntry['status']
  readonly status_message: string | null
  readonly published_at: string
  readonly updated_at: string
  readonly status_changed_at: string
  readonly claims: string | null
  readonly write: number
  readonly revision: number
}

/** With `e` for the entry, `s` for its source and `w` for its stamp. */
export const ENTRY_COLUMNS = `s.name AS source, e.source_id, e.name, e.version, e.document, e.status, e.status_message,
  coalesce(e.published_at, w.at) AS published_at, w.at AS updated_at, coalesce(e.status_changed_at, w.at) AS status_changed_at, e.claims,
  w.write, w.revision`

export function storedEntry(row: EntryRow): StoredEntry {
  return {
    source: row.source,
    name: row.name,
    version: row.version,
    text: row.document,
    status: row.status,
    ...(row.status_message !== null && { statusMessage: row.status_message }),
    publishedAt: row.published_at,
    updatedAt: row.updated_at,
    statusChangedAt: row.status_changed_at,
    ...claimsOfRow(row),
    revision: row.revision,
  }
}

export function claimsText(claims: Claims | undefined): string | null {
  return claims === undefined ? null : JSON.stringify(claims)
}

/** PostgreSQL keeps every character but this one, and halves of none; in documents neither stands bare. */
export function plainText(text: string): string {
  return text.replaceAll('\0', '\ufffd').toWellFormed()
}

function claimsOfRow(row: { readonly claims: string | null }): { claims?: Claims } {
  return row.claims === null ? {} : { claims: JSON.parse(row.claims) as Claims }
}
