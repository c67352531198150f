import { runInTurns } from '@thv/catalog/snapshot/steps'
import { createBackoff } from '@thv/kernel/backoff'
import type { Clock } from '@thv/kernel/clock'
import { errorMessage } from '@thv/kernel/errors'
import type { Logger } from '@thv/telemetry/log'
import type { RegistryStore, SourceRecord, StoreRevision } from '../store/registry-store.ts'
import { createWaker, endsWithin } from '../sync/waker.ts'
import type { Catalogue } from '../views/catalogue.ts'
import type { Arenas } from '../views/catalogue-row.ts'
import { createSearchBuilder } from '../views/search-builder.ts'
import { createViewBuilder, type LatestRow, type ViewBuilder, type ViewSpec } from '../views/view-builder.ts'
import { type Publication, targetKey, type ViewTarget } from './publication.ts'
import { createStoreFollower } from './store-follower.ts'
import { type LaidOutView, layOutViews, viewTag } from './view-layout.ts'

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
const CLOSE_MS = 5_000
/** A search index gives way to newer lists so often in a row. */
const MAX_INTERRUPTIONS = 3

export function startViewLoop(options: ViewLoopOptions): ViewLoop {
  const { store, clock, log, publish, pause } = options
  const stopped = new AbortController()
  const { signal } = stopped
  const waker = createWaker(clock)
  const follower = createStoreFollower({ store, clock, pause, signal, onStructure: publishLayout })
  const { catalogue, contentOf } = follower
  const search = createSearchBuilder()
  const views = new Map<string, View>()
  const wanted = new Map<string, ViewTarget>()
  /** Everything up to this is served. */
  let served: StoreRevision = { data: 0, structure: -1 }
  let storeError: string | undefined = 'the store has not been read yet'
  let lost = false
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
    const { revision, moved } = await follower.follow(statusToo)
    await buildStale()
    const news = storeError !== undefined || moved || statusToo
    storeError = undefined
    lost = false
    served = revision
    if (news) options.onStatus()
    settleWaiters()
    await buildSearches()
  }

  function publishLayout(): void {
    publish({ kind: 'layout', registries: follower.registries.map(({ spec }) => ({ name: spec.name, claims: spec.claims })) })
  }

  async function buildStale(): Promise<void> {
    const { registries, sources } = follower
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
    const done = (until: StoreRevision) => until.data <= served.data && until.structure <= served.structure
    for (const { resolve } of waiters.filter(({ until }) => done(until))) resolve()
    waiters = waiters.filter(({ until }) => !done(until))
  }

  return {
    catalogue,
    get facts() {
      const built = new Set([...views.values()].flatMap((view) => view.targets.map((target) => target.registry)))
      const unbuilt = follower.registries.map(({ spec }) => spec.name).filter((name) => !built.has(name))
      return { storeError, lost, unbuilt, revision: served.data, sources: follower.sources }
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
