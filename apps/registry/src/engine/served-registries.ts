import { openSearchIndex, type SearchIndex } from '@thv/catalog/search/search-index'
import { openSnapshot } from '@thv/catalog/snapshot/snapshot'
import type { Claims } from '@thv/catalog/sources/fetch/source-config'
import { compareVersions } from '@thv/catalog/version-order'
import type { Clock } from '@thv/kernel/clock'
import { ThvError } from '@thv/kernel/errors'
import type { EngineStatus, ServedRegistry, ServedView } from './engine.ts'
import {
  type LayoutPublication,
  type Publication,
  type SearchPublication,
  targetKey,
  type ViewPublication,
  type ViewTarget,
} from './publication.ts'

/** The serving side: the newest of everything that was published. */
export interface ServedRegistries {
  accept(publication: Publication): void
  registry(name: string): ServedRegistry | undefined
  readonly aggregated: ServedRegistry
  readonly status: EngineStatus
  /** The views for readers with some claims only that have been asked for: a restarted engine has to build them too. */
  readonly wanted: readonly ViewTarget[]
}

export interface ServedOptions {
  readonly clock: Clock
  /** Tells the engine to build such a view, and to keep it up to date, or that it is no longer needed. */
  readonly want: (target: ViewTarget) => void
  readonly unwant: (target: ViewTarget) => void
}

const MAX_CLAIM_VIEWS = 16
const FIRST_BUILD_MS = 10_000
const NOT_YET: EngineStatus = {
  storeError: 'the registry is starting',
  loaded: false,
  unbuilt: [],
  unsynced: [],
  failed: [],
  revision: 0,
  syncs: { succeeded: 0, unchanged: 0, failed: 0 },
}

export function createServedRegistries(options: ServedOptions): ServedRegistries {
  let registries = new Map<string, Served>()
  const aggregated = createServed(undefined, undefined, options)
  let status = NOT_YET
  const servedOf = (target: ViewTarget) => (target.registry === undefined ? aggregated : registries.get(target.registry))

  function layOut(layout: LayoutPublication): void {
    const before = registries
    registries = new Map(
      layout.registries.map(({ name, claims }) => {
        const known = before.get(name) ?? createServed(name, claims, options)
        known.claims = claims
        return [name, known]
      }),
    )
    for (const [name, served] of before) if (!registries.has(name)) served.retire()
  }

  function openView(publication: ViewPublication): void {
    const { revision, tag, claimSets } = publication
    const snapshot = openSnapshot(publication.snapshot, compareVersions)
    for (const target of publication.targets) servedOf(target)?.show(target, { revision, tag, snapshot }, claimSets)
  }

  function openSearch({ targets, tag, index, sameAs }: SearchPublication): void {
    const search = index && openSearchIndex(index)
    for (const target of targets) servedOf(target)?.showSearch(target, { tag, search, sameAs })
  }

  return {
    accept(publication) {
      switch (publication.kind) {
        case 'layout':
          return layOut(publication)
        case 'view':
          return openView(publication)
        case 'search':
          return openSearch(publication)
        case 'status':
          // An engine that was started again has read nothing yet, but what the last one built is still served.
          status = { ...publication.status, loaded: status.loaded || publication.status.loaded }
      }
    },
    registry: (name) => registries.get(name),
    aggregated,
    get status() {
      return status
    },
    get wanted() {
      return [aggregated, ...registries.values()].flatMap((served) => served.wanted)
    },
  }
}

interface ShownSearch {
  readonly tag: string
  readonly search: SearchIndex | undefined
  readonly sameAs: string | undefined
}

type ShownView = Pick<ServedView, 'revision' | 'tag' | 'snapshot'>

/** Until the new one is searchable, the search from before serves. */
function successor(old: ServedView | undefined, view: ShownView): ServedView {
  return { ...view, search: old?.search, searchTag: old?.searchTag }
}

function searchable(view: ServedView | undefined, { tag, search, sameAs }: ShownSearch): ServedView | undefined {
  if (view?.tag !== tag) return view
  const found = search ?? (view.searchTag === sameAs ? view.search : undefined)
  return found === undefined ? view : { ...view, search: found, searchTag: tag }
}

type ClaimSets = ViewPublication['claimSets']

interface Served extends ServedRegistry {
  claims: Claims | undefined
  readonly wanted: readonly ViewTarget[]
  show(target: ViewTarget, view: ShownView, sets: ClaimSets): void
  showSearch(target: ViewTarget, search: ShownSearch): void
  /** The registry is gone. */
  retire(): void
}

interface ClaimView {
  readonly target: ViewTarget
  readonly first: PromiseWithResolvers<ServedView>
  view: ServedView | undefined
}

function createServed(registry: string | undefined, claims: Claims | undefined, options: ServedOptions): Served {
  const { clock, want, unwant } = options
  let full: ServedView | undefined
  let keys: readonly string[] = []
  let claimSets: readonly (Claims | undefined)[] = []
  /** Least recently used first. */
  const claimViews = new Map<string, ClaimView>()

  function claimView(visible: readonly string[]): ClaimView {
    const target = { registry, visible }
    const key = targetKey(target)
    const known = claimViews.get(key)
    if (known) {
      claimViews.delete(key)
      claimViews.set(key, known)
      return known
    }
    if (claimViews.size >= MAX_CLAIM_VIEWS * 4) throw new ThvError('store_unavailable', 'too many readers with different claims at once')
    const created: ClaimView = { target, first: Promise.withResolvers(), view: undefined }
    created.first.promise.catch(() => undefined) // the waiting calls receive it
    claimViews.set(key, created)
    for (const [oldKey, old] of claimViews) {
      if (claimViews.size <= MAX_CLAIM_VIEWS) break
      // Somebody waits for the others.
      if (old.view) drop(oldKey, old)
    }
    const timer = clock.setTimer(FIRST_BUILD_MS, () => drop(key, created))
    created.first.promise.then(() => timer.cancel()).catch(() => timer.cancel())
    want(target)
    return created
  }

  function drop(key: string, view: ClaimView): void {
    if (claimViews.get(key) === view) claimViews.delete(key)
    view.first.reject(new ThvError('store_unavailable', 'what these claims may see could not be put together in time'))
    unwant(view.target)
  }

  return {
    name: registry ?? '',
    claims,
    get view() {
      return full
    },
    get claimSets() {
      return claimSets
    },
    async viewFor(visible) {
      const { view, first } = claimView(visible.flatMap((index) => keys[index] ?? []).sort())
      return view ?? first.promise
    },
    get wanted() {
      return [...claimViews.values()].map((view) => view.target)
    },
    show(target, view, sets) {
      if (target.visible === undefined) {
        full = successor(full, view)
        // The same list stays the same object: callers keep what they know by it.
        if (sets.length !== keys.length || sets.some(([key], i) => key !== keys[i])) {
          keys = sets.map(([key]) => key)
          claimSets = sets.map(([, claims]) => claims)
        }
        return
      }
      const known = claimViews.get(targetKey(target))
      if (!known) return
      known.view = successor(known.view, view)
      known.first.resolve(known.view)
    },
    showSearch(target, search) {
      if (target.visible === undefined) full = searchable(full, search)
      const known = target.visible && claimViews.get(targetKey(target))
      if (known) known.view = searchable(known.view, search)
    },
    retire() {
      for (const [key, view] of claimViews) drop(key, view)
    },
  }
}
