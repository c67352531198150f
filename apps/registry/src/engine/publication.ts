import type { SearchIndexData } from '@thv/catalog/search/search-index-data'
import type { SnapshotData } from '@thv/catalog/snapshot/snapshot-data'
import type { Claims } from '@thv/catalog/sources/fetch/source-config'
import type { EngineStatus } from './engine.ts'

/*
 * Messages of the engine to the serving side, in this order: which registries there are, what each serves, how to search it. Plain data: the
 * same goes through a message port or straight into the ears of the same thread.
 */
export type Publication = LayoutPublication | ViewPublication | SearchPublication | StatusPublication

export interface LayoutPublication {
  readonly kind: 'layout'
  /** Views of others are dropped. */
  readonly registries: readonly { readonly name: string; readonly claims: Claims | undefined }[]
}

export interface ViewPublication {
  readonly kind: 'view'
  readonly targets: readonly ViewTarget[]
  readonly revision: number
  readonly tag: string
  readonly snapshot: SnapshotData
  /** All claims of what is in the registry, by their keys, whatever this view shows. */
  readonly claimSets: readonly (readonly [key: string, claims: Claims | undefined])[]
}

export interface SearchPublication {
  readonly kind: 'search'
  readonly targets: readonly ViewTarget[]
  /** Of the view that it is for: when that is replaced already, it comes too late. */
  readonly tag: string
  /** Undefined: the one from before, of the view with the tag `sameAs`, finds the same. */
  readonly index: SearchIndexData | undefined
  readonly sameAs?: string | undefined
}

export interface StatusPublication {
  readonly kind: 'status'
  readonly status: EngineStatus
}

/** Views with the same content go to all of these at once. */
export interface ViewTarget {
  /** Undefined: all registries as one. */
  readonly registry: string | undefined
  /** Of the claims that the reader sees; undefined: all. */
  readonly visible: readonly string[] | undefined
}

/** One text per target; a space is in no registry's name. */
export function targetKey({ registry, visible }: ViewTarget): string {
  return `${registry ?? ' '} ${visible === undefined ? '' : JSON.stringify(visible.toSorted())}`
}
