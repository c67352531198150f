import type { FilterConfig } from '@thv/catalog/filters'
import type { CanonicalSource } from '@thv/resources/kinds/mcp-registry/normalise'
import type { RemotePolicySettings } from '../../../operator-settings.ts'

/** One fetch of a git or api source, as a thread of its own gets it. */
export interface FetchJob {
  readonly source: Pick<CanonicalSource, 'format' | 'git' | 'api'>
  readonly filter: FilterConfig | undefined
  readonly password: string | undefined
  /** Addresses that the operator may call. */
  readonly remotes: RemotePolicySettings
}

export type FetchOutcome =
  | {
      readonly ok: true
      readonly texts: readonly (string | undefined)[]
      readonly servers: number
      readonly left: number
      readonly hash: string
    }
  | FetchFailure

export interface FetchFailure {
  readonly ok: false
  readonly reason:
    | 'ValidationFailed'
    | 'HandlerCreationFailed'
    | 'FetchFailed'
    | 'InvalidData'
    | 'StorageTooLarge'
    | 'StorageFailed'
    | 'SourceNotFound'
  /** Without secrets. */
  readonly message: string
}

/** Of one fetch. */
export const FETCH_LIMITS = {
  maxBytes: 32 * 1024 * 1024,
  maxWireBytes: 64 * 1024 * 1024,
  maxEntries: 200_000,
  maxPages: 5_000,
  timeoutMs: 120_000,
} as const

/** Of the thread of one fetch: its heap. Files and requests lie outside, within `FETCH_LIMITS`. */
export const FETCH_MEMORY_MB = 256
/** Fetches at a time. */
export const PARALLEL_FETCHES = 2
