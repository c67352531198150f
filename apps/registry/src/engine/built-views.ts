import type { SearchIndexData } from '@thv/catalog/search/search-index-data'
import { runInTurns, type Steps } from '@thv/kernel/steps'
import type { Catalog } from '../views/catalog.ts'
import type { Arenas } from '../views/catalog-row.ts'
import type { LatestRow } from '../views/kept-view.ts'
import { createSearchBuilder } from '../views/search-builder.ts'
import { createViewBuilder, type ViewBuilder, type ViewSpec } from '../views/view-builder.ts'
import { type Publication, targetKey, type ViewTarget } from './publication.ts'
import { type LaidOutView, type SourceContent, viewTag } from './view-layout.ts'

export interface BuiltViewsOptions {
  readonly catalog: Catalog
  readonly contentOf: (source: string) => SourceContent
  readonly publish: (publication: Publication) => void
  readonly pause: () => Promise<void>
  readonly signal: AbortSignal
}

/** The existing views, and their receivers. */
export interface BuiltViews {
  /** Those that somebody sees. */
  readonly targets: readonly ViewTarget[]
  /** Builds views that are stale or not published to all, and drops views that are no longer laid out. */
  build(layout: ReadonlyMap<string, LaidOutView>): Promise<void>
  /** Leaves the rest for the next time when there is something newer, but not every time. */
  buildSearches(newer: () => boolean): Promise<void>
  /** The next `build` tells this one again. */
  tellAgain(target: ViewTarget): void
}

/** A search index gives way to newer lists so often in a row. */
const MAX_INTERRUPTIONS = 3

export function createBuiltViews({ catalog, contentOf, publish, pause, signal }: BuiltViewsOptions): BuiltViews {
  const search = createSearchBuilder()
  const views = new Map<string, View>()

  async function build(view: View, { spec, targets }: LaidOutView): Promise<void> {
    const built = await runInTurns(view.builder.build(catalog, spec), { pause, signal })
    const tag = viewTag(spec, contentOf)
    const { snapshot, claimSets } = built
    publish({ kind: 'view', targets, revision: revisionOf(spec), tag, snapshot, claimSets })
    view.tag = tag
    view.arenas = catalog.arenas
    view.told = new Set(targets.map(targetKey))
    view.targets = targets
    view.unsearched = built.latest
  }

  function revisionOf(spec: ViewSpec): number {
    return Math.max(0, ...spec.sources.map(({ name }) => catalog.newest(name).revision))
  }

  async function interruptible(view: View, latest: readonly LatestRow[], newer: () => boolean) {
    // A target without the last index needs a whole one.
    const hasAll = view.targets.every((target) => view.searched.has(targetKey(target)))
    const steps: Steps<SearchIndexData | 'same'> = hasAll ? search.update(view, latest) : search.build(view, latest)
    for (;;) {
      signal.throwIfAborted()
      if (newer() && view.interruptions < MAX_INTERRUPTIONS) {
        view.interruptions++
        return undefined
      }
      const step = steps.next()
      if (step.done) return step.value
      await pause()
    }
  }

  return {
    get targets() {
      return [...views.values()].flatMap((view) => view.targets)
    },
    async build(layout) {
      for (const [key, view] of views) {
        if (layout.has(key)) continue
        view.builder.release()
        search.release(view)
        views.delete(key)
      }
      for (const [key, laidOut] of layout) {
        const view = views.get(key) ?? newView()
        views.set(key, view)
        const told = laidOut.targets.every((target) => view.told.has(targetKey(target)))
        // Entries that have moved leave memory behind, which views from before would keep.
        const stale = view.tag !== viewTag(laidOut.spec, contentOf) || view.arenas !== catalog.arenas
        if (stale || !told) await build(view, laidOut)
      }
    },
    async buildSearches(newer) {
      for (const view of views.values()) {
        if (!view.unsearched || view.tag === undefined) continue
        view.searching = new Set(view.targets.map(targetKey))
        const index = await interruptible(view, view.unsearched, newer)
        if (!index) return
        const { targets, tag, searchTag: sameAs } = view
        publish({ kind: 'search', targets, tag, ...(index === 'same' ? { index: undefined, sameAs } : { index }) })
        view.searched = view.searching
        view.searchTag = tag
        view.unsearched = undefined
        view.interruptions = 0
      }
    },
    tellAgain(target) {
      const key = targetKey(target)
      for (const view of views.values()) {
        view.told.delete(key)
        view.searched.delete(key)
        view.searching.delete(key)
      }
    },
  }
}

interface View {
  readonly builder: ViewBuilder
  tag: string | undefined
  arenas: Arenas | undefined
  told: Set<string>
  targets: readonly ViewTarget[]
  /** Those that were given the search of `searchTag`. */
  searched: Set<string>
  /** Those that have the view whose search is being built. Who has asked again since cannot take that search, and needs a whole one later. */
  searching: Set<string>
  searchTag: string | undefined
  unsearched: readonly LatestRow[] | undefined
  interruptions: number
}

function newView(): View {
  return {
    builder: createViewBuilder(),
    tag: undefined,
    arenas: undefined,
    told: new Set(),
    targets: [],
    searched: new Set(),
    searching: new Set(),
    searchTag: undefined,
    unsearched: undefined,
    interruptions: 0,
  }
}
