import type { Clock } from '@thv/kernel/clock'
import type { EntryStatus, Json } from '../../catalog-entry.ts'
import type { FetchPlace } from './fetch-address.ts'
import type { Claims, SourceConfig } from './source-config.ts'

/** One way to get a registry's data. A handler keeps nothing between calls: what it wants to remember is its `state`. */
export interface RegistryHandler {
  /** Problems of the configuration, as far as they show without a network. */
  validate(source: SourceConfig): readonly string[]
  /** Changes whenever the data do; shares its download with a `fetchRegistry` of the same FetchContext. */
  currentHash(source: SourceConfig, context: FetchContext): Promise<string>
  fetchRegistry(source: SourceConfig, context: FetchContext): Promise<FetchResult>
}

/** One attempt to fetch. */
export interface FetchContext {
  readonly signal: AbortSignal
  readonly clock: Clock
  /** State of the last successful fetch of this source; undefined makes a full fetch. */
  readonly state: FetchState | undefined
  readonly limits: FetchLimits
  /** Data that this attempt has already loaded. */
  readonly memo: Map<string, unknown>
  /** Told of what an operator of the registry should know; never of secrets. */
  readonly warn: (message: string) => void
  /** Addresses of private networks and of this machine may be fetched. Metadata addresses never. */
  readonly allowPrivateAddresses: boolean
  /** Whether this machine may be fetched from. Default: as `allowPrivateAddresses`. */
  readonly allowLoopback?: boolean
  /** Further addresses that are never fetched from, as in `AddressPolicy`. */
  readonly blockedAddresses?: readonly string[]
  /** Folder in which temporary files may be made. */
  readonly tempDir: string
  /** Takes each file of a git or file source as it came, before it is read: for a caller that keeps the source's own format. */
  readonly onFile?: (content: Uint8Array) => void
  /** Without it, no other attempt waits for this one. */
  readonly place?: FetchPlace
}

/** JSON, kept by the caller: etag, commit, the newest time seen … */
export type FetchState = { readonly [name: string]: Json }

export interface FetchLimits {
  /** Of one document, as text. */
  readonly maxBytes: number
  /** Of everything that comes over the wire in one attempt. */
  readonly maxWireBytes: number
  readonly maxEntries: number
  readonly maxPages: number
  /** Of the whole attempt. */
  readonly timeoutMs: number
}

export const DEFAULT_FETCH_LIMITS: FetchLimits = {
  maxBytes: 256 * 1024 * 1024,
  maxWireBytes: 512 * 1024 * 1024,
  maxEntries: 1_000_000,
  maxPages: 20_000,
  timeoutMs: 10 * 60_000,
}

export type FetchResult =
  /** As at the time of `state`: nothing to do. `problems` where they may be others. */
  | { readonly kind: 'unchanged'; readonly hash: string; readonly state: FetchState; readonly problems?: readonly FetchProblem[] }
  /** All there is: what is not among the entries is gone. */
  | {
      readonly kind: 'full'
      readonly entries: readonly FetchedEntry[]
      readonly hash: string
      readonly state: FetchState
      readonly problems: readonly FetchProblem[]
    }
  /** Changes since `state`; deleted ones have their status, or are `gone`. */
  | {
      readonly kind: 'delta'
      readonly entries: readonly FetchedEntry[]
      readonly gone?: readonly { readonly name: string; readonly version: string }[]
      readonly hash: string
      readonly state: FetchState
      readonly problems: readonly FetchProblem[]
    }

/** One version of one server as it came. */
export interface FetchedEntry {
  readonly name: string
  readonly version: string
  /** The `server.json` document as JSON text of one line: with the members, order and numbers of the source. */
  readonly text: string
  readonly tags: readonly string[]
  /** Facts from the origin; the registry fills in the rest. */
  readonly status?: EntryStatus
  readonly statusMessage?: string
  readonly publishedAt?: string
  readonly updatedAt?: string
  /** Claims of callers who see it; null: those of its source. Left out: as it is stored. */
  readonly claims?: Claims | null
}

/** An entry, or a file of a folder, that was dropped or repaired; the others are not touched by it. */
export interface FetchProblem {
  /** Name of the server or file, or its place, e.g. `servers/17`. */
  readonly entry: string
  readonly pointer: string
  readonly message: string
  readonly severity: 'dropped' | 'warning'
}

/** Part of a source's hash: a release that converts differently syncs once more. */
export const CONVERTER_VERSION = 2
