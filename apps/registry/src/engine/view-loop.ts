import { hash } from 'node:crypto'
import { runInTurns } from '@thv/catalog/snapshot/steps'
import { createBackoff } from '@thv/kernel/backoff'
import type { Clock } from '@thv/kernel/clock'
import { errorMessage } from '@thv/kernel/errors'
import type { Logger } from '@thv/telemetry/log'
import type { RegistryRecord, RegistryStore, SourceRecord, StoreRevision } from '../store/registry-store.ts'
import { createWaker, endsWithin } from '../sync/waker.ts'
import { type Catalogue, createCatalogue } from '../views/catalogue.ts'
import type { Arenas } from '../views/catalogue-row.ts'
import { createSearchBuilder } from '../views/search-builder.ts'
import { createViewBuilder, type LatestRow, type ViewBuilder, type ViewSpec } from '../views/view-builder.ts'
import { type Publication, targetKey, type ViewTarget } from './publication.ts'

export interface ViewLoopOptions {
  readonly store: RegistryStore
  readonly clock: Clock
  readonly log: Logger
  readonly publish: (publication: Publication) => void
  readonly pause: () => Promise<void>
  /** Something that the status tells may be another. */
  readonly onStatus: () => void
}

/** Follows the store, and publishes whatever becomes another by it. */
export interface ViewLoop extends AsyncDisposable {
  readonly catalogue: Catalogue
  readonly facts: ViewFacts
  /** Resolves when everything that is in the store now is served, or when the time is over. */
  caughtUp(limitMs: number): Promise<void>
  want(target: ViewTarget): void
  unwant(target: ViewTarget): void
}

export interface ViewFacts {
  readonly storeError: string | undefined
  readonly unbuilt: readonly string[]
  readonly revision: number
  readonly sources: readonly SourceRecord[]
}

const POLL_MS = 1_000
const CLOSE_MS = 5_000
/** A search index gives way to newer lists so often in a row. */
const MAX_INTERRUPTIONS = 3
/** Part of all tags: to be raised when the same rows are served otherwise. */
const FORMAT = 1

export function startViewLoop(options: ViewLoopOptions): ViewLoop {
  const { store, clock, log, publish, pause } = options
  const stopped = new AbortController()
  const { signal } = stopped
  const waker = createWaker(clock)
  const catalogue = createCatalogue()
  const search = createSearchBuilder()
  const views = new Map<string, View>()
  const wanted = new Map<string, ViewTarget>()
  let known: StoreRevision = { data: 0, structure: -1 }
  let sources: readonly SourceRecord[] = []
  let registries: readonly RegistryRecord[] = []
  let ids = new Map<string, number>()
  let storeError: string | undefined = 'the store has not been read yet'
  let waiters: { readonly until: StoreRevision; readonly resolve: () => void }[] = []
  let changed = true
  const unsubscribe = store.onChange(() => {
    changed = true
    waker.wake()
  })
  const loop = run()

  async function run(): Promise<void> {
    const backoff = createBackoff({ baseMs: 100, maxMs: 5_000 })
    while (!signal.aborted) {
      let waitMs = POLL_MS
      try {
        await refresh()
        backoff.reset()
      } catch (e) {
        if (signal.aborted) return
        waitMs = backoff.next()
        if (storeError === undefined) log.warn('the store cannot be read; what is served stays as it is', { error: errorMessage(e) })
        storeError = errorMessage(e)
        options.onStatus()
      }
      await waker.wait(waitMs, signal)
    }
  }

  async function refresh(): Promise<void> {
    const statusToo = changed
    changed = false
    const revision = await store.revision()
    const moved = revision.structure !== known.structure
    if (moved) await readStructure()
    else if (statusToo) sources = await store.sources()
    if (revision.data !== known.data) await readEntries()
    await runInTurns(catalogue.settle(), { pause, signal })
    await buildStale()
    const news = storeError !== undefined || moved || revision.data !== known.data || statusToo
    storeError = undefined
    known = revision
    if (news) options.onStatus()
    settleWaiters()
    await buildSearches()
  }

  async function readStructure(): Promise<void> {
    sources = await store.sources()
    registries = await store.registries()
    const now = new Map(sources.map((source) => [source.config.name, source.id]))
    const gone = new Set([...ids].filter(([name, id]) => now.get(name) !== id).map(([name]) => name))
    await runInTurns(catalogue.dropSources(gone), { pause, signal })
    ids = now
    publish({ kind: 'layout', registries: registries.map(({ spec }) => ({ name: spec.name, claims: spec.claims })) })
  }

  async function readEntries(): Promise<void> {
    for await (const batch of store.entriesAfter(known.data, signal)) {
      for (const entry of batch) if (ids.has(entry.source)) catalogue.add(entry)
      await pause()
      signal.throwIfAborted()
    }
  }

  async function buildStale(): Promise<void> {
    const layout = layOut()
    for (const [key, view] of views) {
      if (layout.has(key)) continue
      view.builder.release()
      views.delete(key)
    }
    for (const [key, wanted] of layout) {
      const view = views.get(key) ?? newView()
      views.set(key, view)
      const told = wanted.targets.every((target) => view.told.has(targetKey(target)))
      // Entries that have moved leave memory behind, which views from before would keep.
      const stale = view.tag !== tagOf(wanted.spec) || view.arenas !== catalogue.arenas
      if (stale || !told) await build(view, wanted)
    }
  }

  async function build(view: View, { spec, targets }: Wanted): Promise<void> {
    const built = await runInTurns(view.builder.build(catalogue, spec), { pause, signal })
    const tag = tagOf(spec)
    const { snapshot, claimSets } = built
    publish({ kind: 'view', targets, revision: revisionOf(spec), tag, snapshot, claimSets })
    view.tag = tag
    view.arenas = catalogue.arenas
    view.told = new Set(targets.map(targetKey))
    view.targets = targets
    view.unsearched = built.latest
  }

  async function buildSearches(): Promise<void> {
    for (const view of views.values()) {
      if (!view.unsearched || view.tag === undefined) continue
      const index = await interruptible(view, view.unsearched)
      // Something newer is waiting: lists first.
      if (!index) return
      publish({ kind: 'search', targets: view.targets, tag: view.tag, index })
      view.unsearched = undefined
      view.interruptions = 0
    }
  }

  async function interruptible(view: View, latest: readonly LatestRow[]) {
    const steps = search.build(latest)
    for (;;) {
      signal.throwIfAborted()
      if (changed && view.interruptions < MAX_INTERRUPTIONS) {
        view.interruptions++
        return undefined
      }
      const step = steps.next()
      if (step.done) return step.value
      await pause()
    }
  }

  /** What there is to serve; registries and readers that see the same share one view. */
  function layOut(): Map<string, Wanted> {
    const layout = new Map<string, { spec: ViewSpec; targets: ViewTarget[] }>()
    const all: ViewTarget[] = [...registries.map(({ spec }) => spec.name), undefined].map((registry) => ({ registry, visible: undefined }))
    for (const target of [...all, ...wanted.values()]) {
      const spec = specOf(target)
      if (!spec) continue
      const key = JSON.stringify([spec.sources.map(({ name }) => name), target.visible?.toSorted() ?? null, spec.floorMs])
      const same = layout.get(key)
      if (same) same.targets.push(target)
      else layout.set(key, { spec, targets: [target] })
    }
    return layout
  }

  function specOf({ registry, visible }: ViewTarget): ViewSpec | undefined {
    const parts = registry === undefined ? registries : registries.filter(({ spec }) => spec.name === registry)
    if (registry !== undefined && parts.length === 0) return undefined
    const names = new Set(parts.flatMap(({ spec }) => spec.sources))
    const claims = new Map(sources.map(({ config }) => [config.name, config.claims]))
    return {
      sources: [...names].map((name) => ({ name, claims: claims.get(name) })),
      visible: visible && new Set(visible),
      floorMs: Math.max(0, ...parts.map(({ updatedAt }) => Date.parse(updatedAt) || 0)),
    }
  }

  function revisionOf(spec: ViewSpec): number {
    return Math.max(0, ...spec.sources.map(({ name }) => catalogue.newest(name).revision))
  }

  /** From what is served alone, so that all replicas give the same; with times, because a store that is lost counts from 1 again. */
  function tagOf(spec: ViewSpec): string {
    const content = spec.sources.map(({ name, claims }) => [ids.get(name), name, claims ?? null, catalogue.newest(name)])
    const visible = spec.visible ? [...spec.visible].sort() : null
    return hash('sha256', JSON.stringify([FORMAT, content, visible, spec.floorMs]), 'base64url').slice(0, 16)
  }

  function settleWaiters(): void {
    const done = (until: StoreRevision) => until.data <= known.data && until.structure <= known.structure
    for (const { resolve } of waiters.filter(({ until }) => done(until))) resolve()
    waiters = waiters.filter(({ until }) => !done(until))
  }

  return {
    catalogue,
    get facts() {
      const built = new Set([...views.values()].flatMap((view) => view.targets.map((target) => target.registry)))
      const unbuilt = registries.map(({ spec }) => spec.name).filter((name) => !built.has(name))
      return { storeError, unbuilt, revision: known.data, sources }
    },
    async caughtUp(limitMs) {
      const until = await store.revision()
      const { promise, resolve } = Promise.withResolvers<void>()
      const waiter = { until, resolve }
      waiters.push(waiter)
      settleWaiters()
      changed = true
      waker.wake()
      await endsWithin(clock, limitMs, promise)
      waiters = waiters.filter((other) => other !== waiter)
    },
    want(target) {
      wanted.set(targetKey(target), target)
      changed = true
      waker.wake()
    },
    unwant(target) {
      wanted.delete(targetKey(target))
    },
    async [Symbol.asyncDispose]() {
      unsubscribe()
      stopped.abort()
      await endsWithin(clock, CLOSE_MS, loop)
    },
  }
}

interface Wanted {
  readonly spec: ViewSpec
  readonly targets: readonly ViewTarget[]
}

interface View {
  readonly builder: ViewBuilder
  tag: string | undefined
  arenas: Arenas | undefined
  told: Set<string>
  targets: readonly ViewTarget[]
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
    unsearched: undefined,
    interruptions: 0,
  }
}
