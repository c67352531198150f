import { runInTurns } from '@thv/catalog/snapshot/steps'
import { createBackoff } from '@thv/kernel/backoff'
import type { Clock } from '@thv/kernel/clock'
import { formatDuration } from '@thv/kernel/duration'
import { errorMessage, ThvError } from '@thv/kernel/errors'
import type { Logger } from '@thv/telemetry/log'
import type { RegistryRecord, RegistryStore, SourceRecord, StoreRevision } from '../store/registry-store.ts'
import { createWaker, endsWithin } from '../sync/waker.ts'
import { type Catalogue, createCatalogue } from '../views/catalogue.ts'
import type { Arenas } from '../views/catalogue-row.ts'
import { createSearchBuilder } from '../views/search-builder.ts'
import { createViewBuilder, type LatestRow, type ViewBuilder, type ViewSpec } from '../views/view-builder.ts'
import { type Publication, targetKey, type ViewTarget } from './publication.ts'
import { type LaidOutView, layOutViews, type SourceContent, viewTag } from './view-layout.ts'

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
  /** Resolves when everything that is in the store now is served, or when the time is over. Never rejects. */
  caughtUp(limitMs: number): Promise<void>
  want(target: ViewTarget): void
  unwant(target: ViewTarget): void
}

export interface ViewFacts {
  readonly storeError: string | undefined
  /** It is known that the store does not answer. */
  readonly lost: boolean
  readonly unbuilt: readonly string[]
  readonly revision: number
  readonly sources: readonly SourceRecord[]
}

/** For the case that nobody tells of a change: all replicas serve it within a second all the same. */
const POLL_MS = 500
/** A store that has not told its revision by then is as good as lost. Statements of a sync may take longer. */
const LOOK_MS = 5_000
const CLOSE_MS = 5_000
/** So often it reads what was written while it read. */
const MAX_ROUNDS = 5
/** A search index gives way to newer lists so often in a row. */
const MAX_INTERRUPTIONS = 3

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
  let lost = false
  let looking: Promise<StoreRevision> | undefined
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
        if (!lost) log.warn('the store cannot be read; what is served stays as it is', { error: errorMessage(e) })
        lost = true
        storeError = errorMessage(e)
        options.onStatus()
      }
      await waker.wait(waitMs, signal)
    }
  }

  async function refresh(): Promise<void> {
    const statusToo = changed
    changed = false
    const first = await look()
    const moved = first.structure !== known.structure
    if (moved) await readStructure()
    else if (statusToo) sources = await store.sources()
    const revision = first.data === known.data ? first : await readEntries(first)
    await runInTurns(catalogue.settle(), { pause, signal })
    await buildStale()
    const news = storeError !== undefined || moved || revision.data !== known.data || statusToo
    storeError = undefined
    lost = false
    known = revision
    if (news) options.onStatus()
    settleWaiters()
    await buildSearches()
  }

  /** One question at a time: those to a store that is silent would only fill its queue. */
  async function look(): Promise<StoreRevision> {
    looking ??= store.revision().finally(() => {
      looking = undefined
    })
    const answer = looking
    if (await endsWithin(clock, LOOK_MS, answer)) return answer
    throw new ThvError('store_unavailable', `the store did not answer within ${formatDuration(LOOK_MS)}`)
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

  /**
   * Gives the revision up to which everything has come. Rows that somebody writes while others are read may be left to the next reading;
   * so it reads on until nobody has, lest a revision be served in part.
   */
  async function readEntries(first: StoreRevision): Promise<StoreRevision> {
    let { data: after } = known
    let read = first
    for (let round = 1; ; round++) {
      await readAfter(after)
      const now = await look()
      // Sources that are new since are not known here: their rows come with the next structure.
      if (now.data === read.data || now.structure !== first.structure || round === MAX_ROUNDS) return read
      after = read.data
      read = now
    }
  }

  async function readAfter(after: number): Promise<void> {
    for await (const batch of store.entriesAfter(after, signal)) {
      for (const entry of batch) if (ids.has(entry.source)) catalogue.add(entry)
      await pause()
      signal.throwIfAborted()
    }
  }

  async function buildStale(): Promise<void> {
    const layout = layOutViews({ registries, sources, wanted: [...wanted.values()] })
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
      const stale = view.tag !== viewTag(laidOut.spec, contentOf) || view.arenas !== catalogue.arenas
      if (stale || !told) await build(view, laidOut)
    }
  }

  async function build(view: View, { spec, targets }: LaidOutView): Promise<void> {
    const built = await runInTurns(view.builder.build(catalogue, spec), { pause, signal })
    const tag = viewTag(spec, contentOf)
    const { snapshot, claimSets } = built
    publish({ kind: 'view', targets, revision: revisionOf(spec), tag, snapshot, claimSets })
    view.tag = tag
    view.arenas = catalogue.arenas
    view.told = new Set(targets.map(targetKey))
    view.targets = targets
    view.unsearched = built.latest
  }

  function revisionOf(spec: ViewSpec): number {
    return Math.max(0, ...spec.sources.map(({ name }) => catalogue.newest(name).revision))
  }

  function contentOf(source: string): SourceContent {
    return { id: ids.get(source), ...catalogue.newest(source) }
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
    const steps = search.build(view, latest)
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
      return { storeError, lost, unbuilt, revision: known.data, sources }
    },
    async caughtUp(limitMs) {
      let waiter: (typeof waiters)[number] | undefined
      const shown = async () => {
        const until = await store.revision()
        const { promise, resolve } = Promise.withResolvers<void>()
        waiter = { until, resolve }
        waiters.push(waiter)
        settleWaiters()
        changed = true
        waker.wake()
        await promise
      }
      // Whoever waits has written already: a store that is lost now does not undo that.
      await endsWithin(clock, limitMs, shown()).catch((e) => log.debug('what is served may be older', { error: errorMessage(e) }))
      waiters = waiters.filter((other) => other !== waiter)
    },
    want(target) {
      const key = targetKey(target)
      wanted.set(key, target)
      // Whoever asks has no view, even if one that was unwanted a moment ago is still here.
      for (const view of views.values()) view.told.delete(key)
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
