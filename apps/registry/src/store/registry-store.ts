import type { EntryStatus } from '@thv/catalog/catalog-entry'
import type { FetchProblem, FetchState } from '@thv/catalog/sources/fetch/registry-handler'
import type { Claims, SourceConfig } from '@thv/catalog/sources/fetch/source-config'

/**
 * The data of the registry. Two adapters (SQLite, PostgreSQL) pass one contract suite. Every change of what is served takes a new
 * revision and stamps the rows it changed, so that the serving side reads only what is new. Rows of entries are never removed while their
 * source exists: what is gone has status `deleted`.
 * Times are RFC 3339 in UTC with milliseconds; the store's clock makes them (PostgreSQL: the database's own). One write takes one
 * revision and one time, and a later revision has a later time, also when the clock stands still or goes back: who asks for what is
 * newer than the newest it has seen misses nothing. A write that changes nothing takes no revision and moves no time.
 * Whatever cannot be read or written for the moment is `store_unavailable`; nothing of that write has happened then.
 */
export interface RegistryStore extends AsyncDisposable {
  readonly kind: 'sqlite' | 'postgres'
  /** The newest revision that is committed, with everything below it. */
  revision(): Promise<StoreRevision>
  /** The listener must not throw. Calls back soon after a revision or a source's status changed, by whichever process; also after a lost connection is back. */
  onChange(listener: () => void): () => void
  /** Resolves if the store answers; rejects otherwise. For readiness. */
  ping(signal: AbortSignal): Promise<void>

  // ── what is configured ──
  /** By name. */
  sources(): Promise<readonly SourceRecord[]>
  /** Configured ones first, in their order; then the others in the order of their making. */
  registries(): Promise<readonly RegistryRecord[]>
  /**
   * Makes the CONFIG objects exactly these, in one transaction: what is not among them goes, sources with their entries and out of every
   * registry. `conflict` if an API-made object has one of the names, or there would be two managed sources; `bad_request` if a registry
   * names an unknown source, or one twice. Registries may name API-made sources.
   * A source that becomes managed, or no longer is, is created again: its entries go. With any other change they stay until the next sync.
   * A source of which more than the claims changed, here or by `putSource`, is due now, has neither hash nor state, and a lease on it is
   * lost.
   */
  reconcileConfig(config: { sources: readonly SourceConfig[]; registries: readonly RegistrySpec[] }): Promise<void>
  /** `forbidden` (made by configuration), `bad_request` (another type), `conflict` (a second managed one). Gives whether it was created. */
  putSource(source: SourceConfig): Promise<{ created: boolean }>
  /** `not_found`, `forbidden`, `conflict` (a registry uses it). */
  deleteSource(name: string): Promise<void>
  /** `forbidden`, `bad_request` (a source that is not there, or twice). */
  putRegistry(registry: RegistrySpec): Promise<{ created: boolean }>
  /** `not_found`, `forbidden`. */
  deleteRegistry(name: string): Promise<void>

  // ── entries ──
  /**
   * Rows of all sources with a revision above `after`, in order of revision, in batches; with `after` 0 everything. What is written
   * meanwhile may come too, a row then a second time with its newer revision; it ends though writing goes on. Once it ended, everything up to the highest revision that
   * came, and up to what `revision()` gave before, has come. A source that was deleted, or created again (another `id`), takes its rows with
   * it: only `structure` tells.
   */
  entriesAfter(after: number, signal: AbortSignal): AsyncIterable<readonly StoredEntry[]>
  /**
   * Name, version, hash and status of every row of one source, or of the rows with these names: what a sync compares with. Nothing if
   * there is no such source.
   */
  fingerprints(source: string, signal: AbortSignal, names?: readonly string[]): AsyncIterable<readonly Fingerprint[]>
  /** All versions of one server of one source, also deleted ones, by version as text. Empty if there is none. */
  versionsOf(source: string, name: string): Promise<readonly StoredEntry[]>

  // ── writing entries of the managed source: one transaction each. `not_found`: no such source; `bad_request`: it is not managed ──
  /**
   * `version_exists` if (name, version) is there and not deleted; a deleted one is published again, with all times new. All versions of a
   * name, deleted ones too, have the same claims: without claims it takes theirs, with others than theirs it is a `conflict`. So a name
   * stays with whom it belonged to.
   */
  publish(entry: NewEntry): Promise<StoredEntry>
  /** Another document for a version that is there, also a deleted one. Without status, that and its message stay. Claims as above. */
  replaceDocument(entry: NewEntry): Promise<StoredEntry>
  /**
   * Of one version, or (without version) of all that are not deleted already when the new status is deleted. Gives these rows by version,
   * whether or not they changed. `not_found`: no such version, or no version at all. `statusChangedAt` moves if the status is another.
   */
  setStatus(change: StatusChange): Promise<readonly StoredEntry[]>
  /** Of all versions of a name, deleted ones too. `not_found`: there is none. Any source will do. */
  claimsOf(source: string, name: string): Promise<Claims | undefined>
  /** Of all versions of a name, deleted ones too; `updatedAt` of them moves. `not_found`: there is none. */
  setClaims(change: ClaimsChange): Promise<void>

  // ── sync ──
  /**
   * Leases what is due, oldest first, then by name; a source whose lease is held by somebody else is not due, and a managed one never.
   * A new source is due at once. Never waits for another process. `except`: sources that this process may not sync.
   */
  claimDue(claim: { owner: string; leaseMs: number; limit: number; except?: readonly string[] }): Promise<readonly LeasedSource[]>
  /** False: the lease is lost, and nothing of this attempt may be written. An expired lease that no other holder has taken is not lost. */
  renewLease(lease: Lease, leaseMs: number): Promise<boolean>
  /**
   * Writes what changed and how the attempt ended, and gives the lease back, in one transaction. Rejects with `lease_lost`. What has the
   * hash and status that it had is left as it is. What failed keeps hash, state, counts and problems of the last success.
   */
  finishSync(lease: Lease, outcome: SyncOutcome): Promise<SyncWritten>
  /** Makes the source due now, or again when the attempt that is under way has ended. `not_found`, `bad_request` (managed). */
  requestSync(source: string): Promise<void>
  /** How long until something is due, or the lease on it is over; undefined if nothing ever is. */
  nextDueInMs(except?: readonly string[]): Promise<number | undefined>
}

/** `structure` moves when sources, registries or claims of sources change; then views are laid out again. */
export interface StoreRevision {
  readonly data: number
  readonly structure: number
}

export type Creation = 'CONFIG' | 'API'

export interface SourceRecord {
  /** Never the same for two sources, also not for two of one name, one after the other. */
  readonly id: number
  readonly config: SourceConfig
  readonly creation: Creation
  readonly createdAt: string
  readonly updatedAt: string
  readonly sync: SyncStatus
}

export type SyncPhase = 'pending' | 'syncing' | 'complete' | 'failed'

export interface SyncStatus {
  /** `syncing` as long as a lease on it lasts. A managed source is always `complete`. */
  readonly phase: SyncPhase
  /** Failures in a row; 0 after a success. */
  readonly attemptCount: number
  readonly lastAttempt?: string
  readonly lastSuccess?: string
  /** Entries (versions) that are served: not deleted. */
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
  /**
   * `conflict` unless the name has just these claims of its own; null: none, or it is not there yet. A decision by them whether this
   * may be written is not overtaken by a change of them.
   */
  readonly ifClaims?: Claims | null
}

/** Preconditions of a change of published entries, checked in the transaction that changes them. */
export interface ChangeConditions {
  /** As in `NewEntry`. */
  readonly ifClaims?: Claims | null
  /** Deleted versions are as good as not there: `not_found` if no other one is meant. */
  readonly ifLiving?: boolean
}

export interface StatusChange extends ChangeConditions {
  readonly source: string
  readonly name: string
  readonly version?: string
  readonly status: EntryStatus
  /** Undefined removes it. */
  readonly statusMessage?: string
  /** `bad_request` if all that are meant have the status and the message already. */
  readonly ifOther?: boolean
}

export interface ClaimsChange extends ChangeConditions {
  readonly source: string
  readonly name: string
  /** Undefined: those of the source count. */
  readonly claims: Claims | undefined
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
  /** As it was before this claim. */
  readonly sync: SyncStatus
  readonly state: FetchState | undefined
  /** Somebody asked for it. */
  readonly manual: boolean
}

/** `nextInMs`: when it is due again. */
export type SyncOutcome =
  | {
      readonly kind: 'unchanged'
      readonly nextInMs: number
      readonly state: FetchState
      /** Others than at the last success, though the entries are the same. */
      readonly problems?: readonly FetchProblem[]
      readonly problemCount?: number
    }
  | { readonly kind: 'failed'; readonly nextInMs: number; readonly message: string }
  | {
      readonly kind: 'changed'
      readonly nextInMs: number
      readonly state: FetchState
      readonly hash: string
      readonly message: string
      readonly problems: readonly FetchProblem[]
      readonly problemCount: number
      /** No (name, version) twice. */
      readonly upserts: readonly SyncedEntry[]
      /** Become tombstones: their status message goes, their text stays. What is not there, or deleted already, is left as it is. */
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
  /** As the origin has it, kept as it is written; else the time of the first write. */
  readonly publishedAt?: string
  /** Of the entry itself; null: none. Left out: those that are stored stay. */
  readonly claims?: Claims | null
}

/** The message of a source after an `unchanged` attempt. */
export const UNCHANGED_MESSAGE = 'Nothing has changed since the last sync'

/** `revision`: the newest one, whether or not this attempt has taken it. */
export interface SyncWritten {
  readonly revision: number
  readonly serverCount: number
}
