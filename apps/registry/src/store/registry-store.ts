import type { EntryStatus } from '@thv/catalog/catalog-entry'
import type { FetchProblem, FetchState } from '@thv/catalog/sources/registry-handler'
import type { Claims, SourceConfig } from '@thv/catalog/sources/source-config'

/**
 * What the registry keeps. Two adapters (SQLite, PostgreSQL) pass one contract suite. Every change of what is served takes a new
 * revision and stamps the rows it changed, so that whoever serves reads only what is new. Rows of entries are never removed while their
 * source exists: what is gone has status `deleted`.
 * Times are RFC 3339 in UTC with milliseconds; the store's clock makes them (PostgreSQL: the database's own).
 */
export interface RegistryStore extends AsyncDisposable {
  readonly kind: 'sqlite' | 'postgres'
  /** The newest revision that is committed, with everything below it. */
  revision(): Promise<StoreRevision>
  /** Calls back soon after a revision or a source's status changed, by whichever process; also after a lost connection is back. */
  onChange(listener: () => void): () => void
  /** Resolves if the store answers; rejects otherwise. For readiness. */
  ping(signal: AbortSignal): Promise<void>

  // ── what is configured ──
  sources(): Promise<readonly SourceRecord[]>
  registries(): Promise<readonly RegistryRecord[]>
  /** Makes the CONFIG objects exactly these, in one transaction. Rejects with `conflict` if an API-made object has one of the names. */
  reconcileConfig(config: { sources: readonly SourceConfig[]; registries: readonly RegistrySpec[] }): Promise<void>
  /** `conflict`, `forbidden` (made by configuration), `bad_request` (another type). Gives whether it was created. */
  putSource(source: SourceConfig): Promise<{ created: boolean }>
  /** `not_found`, `forbidden`, `conflict` (a registry uses it). */
  deleteSource(name: string): Promise<void>
  putRegistry(registry: RegistrySpec): Promise<{ created: boolean }>
  deleteRegistry(name: string): Promise<void>

  // ── entries ──
  /** Rows of all sources with a revision above `after`, in order of revision, in batches; with `after` 0 everything. */
  entriesAfter(after: number, signal: AbortSignal): AsyncIterable<readonly StoredEntry[]>
  /** Name, version, hash and status of every row of one source: what a sync compares with. */
  fingerprints(source: string, signal: AbortSignal): AsyncIterable<readonly Fingerprint[]>
  /** All versions of one server of one source. */
  versionsOf(source: string, name: string): Promise<readonly StoredEntry[]>

  // ── writing entries of the managed source: one transaction each ──
  /** `version_exists` if (name, version) is there and not deleted; a deleted one is published anew. */
  publish(entry: NewEntry): Promise<StoredEntry>
  /** Another document for a version that is there. `not_found`. */
  replaceDocument(entry: NewEntry): Promise<StoredEntry>
  /** Of one version, or (without version) of all that are not deleted already when the new status is deleted. `not_found`. */
  setStatus(change: StatusChange): Promise<readonly StoredEntry[]>
  /** `not_found`. */
  claimsOf(source: string, name: string): Promise<Claims | undefined>
  setClaims(source: string, name: string, claims: Claims | undefined): Promise<void>

  // ── sync ──
  /** Leases what is due, oldest first; a source whose lease is held by somebody else is not due. Never waits for another process. */
  claimDue(claim: { owner: string; leaseMs: number; limit: number }): Promise<readonly LeasedSource[]>
  /** False: the lease is lost, and nothing of this attempt may be written. */
  renewLease(lease: Lease, leaseMs: number): Promise<boolean>
  /** Writes what changed and how the attempt ended, and gives the lease back, in one transaction. Rejects with `lease_lost`. */
  finishSync(lease: Lease, outcome: SyncOutcome): Promise<SyncWritten>
  /** Makes the source due now. `not_found`. */
  requestSync(source: string): Promise<void>
  /** How long until something is due; undefined if nothing ever is. */
  nextDueInMs(): Promise<number | undefined>
}

/** `structure` moves when sources, registries or claims of sources change; then views are laid out anew. */
export interface StoreRevision {
  readonly data: number
  readonly structure: number
}

export type Creation = 'CONFIG' | 'API'

export interface SourceRecord {
  readonly config: SourceConfig
  readonly creation: Creation
  readonly createdAt: string
  readonly updatedAt: string
  readonly sync: SyncStatus
}

export type SyncPhase = 'pending' | 'syncing' | 'complete' | 'failed'

export interface SyncStatus {
  readonly phase: SyncPhase
  /** Failures in a row; 0 after a success. */
  readonly attemptCount: number
  readonly lastAttempt?: string
  readonly lastSuccess?: string
  /** Entries that are served: not deleted. */
  readonly serverCount: number
  readonly message: string
  /** Of the last sync that changed something, at most 100; `problemCount` tells them all. */
  readonly problems: readonly FetchProblem[]
  readonly problemCount: number
  readonly hash?: string
}

export interface RegistrySpec {
  readonly name: string
  /** First wins. */
  readonly sources: readonly string[]
  readonly claims?: Claims
}

export interface RegistryRecord {
  readonly spec: RegistrySpec
  readonly creation: Creation
  readonly createdAt: string
  readonly updatedAt: string
}

export interface StoredEntry {
  readonly source: string
  readonly name: string
  readonly version: string
  /** JSON of one line. */
  readonly text: string
  readonly status: EntryStatus
  readonly statusMessage?: string
  readonly publishedAt: string
  readonly updatedAt: string
  readonly statusChangedAt: string
  /** Of the entry itself; undefined: those of its source count. */
  readonly claims?: Claims
  readonly revision: number
}

export interface Fingerprint {
  readonly name: string
  readonly version: string
  /** As given at the last write. */
  readonly hash: string
  readonly status: EntryStatus
}

/** For the managed source. */
export interface NewEntry {
  readonly source: string
  readonly name: string
  readonly version: string
  readonly text: string
  readonly status?: EntryStatus
  readonly statusMessage?: string
  readonly claims?: Claims
}

export interface StatusChange {
  readonly source: string
  readonly name: string
  readonly version?: string
  readonly status: EntryStatus
  /** Undefined removes it. */
  readonly statusMessage?: string
}

export interface Lease {
  readonly source: string
  readonly owner: string
  /** Differs for every claim. */
  readonly token: string
}

export interface LeasedSource {
  readonly lease: Lease
  readonly config: SourceConfig
  readonly sync: SyncStatus
  readonly state: FetchState | undefined
  /** Somebody asked for it. */
  readonly manual: boolean
}

/** `nextInMs`: when it is due again. */
export type SyncOutcome =
  | { readonly kind: 'unchanged'; readonly nextInMs: number; readonly state: FetchState }
  | { readonly kind: 'failed'; readonly nextInMs: number; readonly message: string }
  | {
      readonly kind: 'changed'
      readonly nextInMs: number
      readonly state: FetchState
      readonly hash: string
      readonly message: string
      readonly problems: readonly FetchProblem[]
      readonly problemCount: number
      readonly upserts: readonly SyncedEntry[]
      /** Become tombstones. */
      readonly gone: readonly { readonly name: string; readonly version: string }[]
    }

export interface SyncedEntry {
  readonly name: string
  readonly version: string
  readonly text: string
  /** Over text, status and what else makes a difference. */
  readonly hash: string
  readonly status: EntryStatus
  readonly statusMessage?: string
  /** As the origin has it; else the time of the first write. */
  readonly publishedAt?: string
}

export interface SyncWritten {
  readonly revision: number
  readonly serverCount: number
}
