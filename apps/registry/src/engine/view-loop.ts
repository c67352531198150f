import { createBackoff } from '@thv/kernel/backoff'
import type { Clock } from '@thv/kernel/clock'
import { errorMessage } from '@thv/kernel/errors'
import type { Logger } from '@thv/telemetry/log'
import type { RegistryStore, SourceRecord, StoreRevision } from '../store/registry-store.ts'
import { createWaker, endsWithin } from '../sync/waker.ts'
import type { Catalog } from '../views/catalog.ts'
import { createBuiltViews } from './built-views.ts'
import { type Publication, targetKey, type ViewTarget } from './publication.ts'
import { createStoreFollower } from './store-follower.ts'
import { layOutViews } from './view-layout.ts'

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
  readonly catalog: Catalog
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

/** Without a notification: all replicas serve a change within a second all the same. */
const POLL_MS = 500
const CLOSE_MS = 5_000

export function startViewLoop(options: ViewLoopOptions): ViewLoop {
  const { store, clock, log, publish, pause } = options
  const stopped = new AbortController()
  const { signal } = stopped
  const waker = createWaker(clock)
  const follower = createStoreFollower({ store, clock, pause, signal, onStructure: publishLayout })
  const { catalog, contentOf } = follower
  const views = createBuiltViews({ catalog, contentOf, publish, pause, signal })
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
    const { registries, sources } = follower
    await views.build(layOutViews({ registries, sources, wanted: [...wanted.values()] }))
    const news = storeError !== undefined || moved || statusToo
    storeError = undefined
    lost = false
    served = revision
    if (news) options.onStatus()
    settleWaiters()
    // Lists first: what is newer interrupts.
    await views.buildSearches(() => changed)
  }

  function publishLayout(): void {
    publish({ kind: 'layout', registries: follower.registries.map(({ spec }) => ({ name: spec.name, claims: spec.claims })) })
  }

  function settleWaiters(): void {
    const done = (until: StoreRevision) => until.data <= served.data && until.structure <= served.structure
    for (const { resolve } of waiters.filter(({ until }) => done(until))) resolve()
    waiters = waiters.filter(({ until }) => !done(until))
  }

  return {
    catalog,
    get facts() {
      const built = new Set(views.targets.map((target) => target.registry))
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
      // The waiting caller has written already: a store that is lost now does not undo that.
      await endsWithin(clock, limitMs, shown()).catch((e) => log.debug('what is served may be older', { error: errorMessage(e) }))
      waiters = waiters.filter((other) => other !== waiter)
    },
    want(target) {
      wanted.set(targetKey(target), target)
      // The caller has no view, even if an unwanted one is still here.
      views.tellAgain(target)
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
