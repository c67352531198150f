import type { SearchIndex } from '@thv/catalog/search/search-index'
import type { Snapshot } from '@thv/catalog/snapshot/snapshot'
import type { Claims, SourceConfig } from '@thv/catalog/sources/fetch/source-config'
import type {
  ClaimsChange,
  NewEntry,
  RegistryRecord,
  RegistrySpec,
  SourceRecord,
  StatusChange,
  StoredEntry,
} from '../store/registry-store.ts'
import type { ListedImages } from './listed-images.ts'

/**
 * The half of the registry that answers no requests: it owns the store, syncs, and builds what is served. It runs in a worker; this is
 * how the serving half sees it. Everything that a read needs is here already, so that reads never wait for it.
 */
export interface RegistryEngine extends AsyncDisposable {
  /** Undefined: there is no such registry. */
  registry(name: string): ServedRegistry | undefined
  /** All registries as one, in their order. */
  readonly aggregated: ServedRegistry
  readonly status: EngineStatus
  /** Calls of the store. A write resolves when its effect is served, or after two seconds at most. */
  readonly admin: EngineAdmin
  /** Another configuration takes the place of the old one. Rejects, and keeps the old one, if it cannot be used. */
  reload(config: import('../config/registry-config.ts').RegistryConfig): Promise<void>
  /** Gives leadership back, so that another replica reads the cluster before this one ends. Reads go on. */
  resign(): Promise<void>
}

export interface ServedRegistry {
  readonly name: string
  readonly claims: Claims | undefined
  /** Everything in it, regardless of claims. Undefined until it is built for the first time. */
  readonly view: ServedView | undefined
  /** The different claims of its entries (those of an entry, else of its source), at the index that `viewFor` takes. */
  readonly claimSets: readonly (Claims | undefined)[]
  /** The view of a caller that sees only these claim sets: hidden entries give way to those of later sources. */
  viewFor(visible: readonly number[]): Promise<ServedView>
}

/** One registry at one moment. Never changes: newer ones take its place. */
export interface ServedView {
  readonly revision: number
  /** Another whenever an answer may be another; safe inside an ETag. */
  readonly tag: string
  readonly snapshot: Snapshot
  /**
   * Undefined until it is built for the first time: lists are served first. After a change it is the one from before for a while; it may
   * then find servers that are gone, and miss new ones.
   */
  readonly search: SearchIndex | undefined
  /** The tag of the view that `search` was built from. Goes with `tag` into the ETag of what was searched for. */
  readonly searchTag?: string | undefined
}

export interface EngineStatus {
  /** Undefined: the store answers. */
  readonly storeError?: string
  /** The store has answered since the start, so there is something to serve even if it does not answer now. */
  readonly loaded: boolean
  /** Registries whose view has not been built yet. */
  readonly unbuilt: readonly string[]
  /** Sources that have neither synced nor failed since the start and have no data from before. */
  readonly unsynced: readonly string[]
  /** Sources whose last attempt failed. */
  readonly failed: readonly string[]
  readonly revision: number
  /** Whether this replica reads the cluster of the kubernetes sources. Undefined: there is no election. */
  readonly leader?: LeaderStatus
  /** Counts since the start, for metrics. */
  /** Times that a kind of a cluster went, came back, or could be read no more or again. */
  readonly kindChanges?: number
  readonly syncs: { readonly succeeded: number; readonly unchanged: number; readonly failed: number }
}

export interface LeaderStatus {
  /** Of all kubernetes sources with an election. */
  readonly leading: boolean
  /** Times that leadership came or went. */
  readonly transitions: number
  /** Why the Lease cannot be taken. */
  readonly problem?: string
  /** Other replicas do not see what the leader writes. */
  readonly ownStore?: boolean
}

export interface EngineAdmin {
  sources(): Promise<readonly SourceRecord[]>
  registries(): Promise<readonly RegistryRecord[]>
  putSource(source: SourceConfig): Promise<{ created: boolean }>
  deleteSource(name: string): Promise<void>
  putRegistry(registry: RegistrySpec): Promise<{ created: boolean }>
  deleteRegistry(name: string): Promise<void>
  requestSync(source: string): Promise<void>
  /** Without the documents' texts unless asked for; name by code point, then version ascending. */
  entriesOf(source: string): Promise<readonly EntrySummary[]>
  /** Hashes of the images that the registries list. */
  listedImages(): Promise<ListedImages>
  publish(entry: NewEntry): Promise<StoredEntry>
  replaceDocument(entry: NewEntry): Promise<StoredEntry>
  setStatus(change: StatusChange): Promise<readonly StoredEntry[]>
  versionsOf(source: string, name: string): Promise<readonly StoredEntry[]>
  claimsOf(source: string, name: string): Promise<Claims | undefined>
  setClaims(change: ClaimsChange): Promise<void>
}

export interface EntrySummary {
  readonly name: string
  readonly version: string
  readonly title?: string
  readonly description?: string
  readonly status: StoredEntry['status']
  readonly claims?: Claims
  readonly createdAt: string
  readonly updatedAt: string
}
