import type { FetchPlace } from '@thv/catalog/sources/fetch/fetch-address'
import type { FetchLimits, RegistryHandler } from '@thv/catalog/sources/fetch/registry-handler'
import type { SourceType } from '@thv/catalog/sources/fetch/source-config'
import type { Clock } from '@thv/kernel/clock'
import type { Logger } from '@thv/telemetry/log'
import type { SyncConfig } from '../config/registry-config.ts'
import type { RegistryStore } from '../store/registry-store.ts'

/** Managed sources need none: they are not fetched. */
export type Handlers = { readonly [type in SourceType]?: RegistryHandler }

export interface SyncOptions {
  readonly store: RegistryStore
  readonly handlers: Handlers
  readonly clock: Clock
  readonly log: Logger
  readonly config: SyncConfig
  /** The holder of the leases: another for each process. */
  readonly owner: string
  readonly limits: FetchLimits
  readonly tempDir: string
  /** Of the Kubernetes API server: never fetched from. */
  readonly blockedAddresses?: readonly string[]
  /** The attempt's own. */
  readonly place: FetchPlace
  /** In [0, 1). */
  readonly random: () => number
  /** Lets the event loop turn. */
  readonly pause: () => Promise<void>
}
