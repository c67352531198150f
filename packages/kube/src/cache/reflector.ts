import { type Backoff, createBackoff } from '@thv/kernel/backoff'
import { type Clock, systemClock } from '@thv/kernel/clock'
import { abortable } from '@thv/kernel/deadline'
import { ThvError } from '@thv/kernel/errors'
import type { ListOptions } from '../client/client.ts'
import { isExpired, KubeApiError } from '../client/kube-api-error.ts'
import { parseLabelSelector } from '../objects/label-selector.ts'
import { compareResourceVersions, formatKey, keyOf } from '../objects/object-key.ts'
import type { KubeObject, ResourceType, WatchEvent } from '../objects/types.ts'
import { EventFeed, type EventHandler } from './event-feed.ts'
import { newReflectorStats, type ReflectorOptions, type ReflectorPhase, type ReflectorStats } from './reflector-options.ts'
import { SafetyCheck } from './safety-check.ts'
import { type ReadonlyStore, withoutManagedFields } from './store.ts'

export type { EventHandler, ObjectEvent } from './event-feed.ts'
export type { ReflectorClient, ReflectorOptions, ReflectorPhase, ReflectorStats } from './reflector-options.ts'

/**
 * Keeps a cache of one kind equal to the server, for as long as it runs: list, then watch from there, and again after every way in
 * which that can end. Handlers receive each difference exactly once, also when a fresh list had to find it.
 */
export class Reflector<T extends KubeObject = KubeObject> {
  readonly type: ResourceType<T>
  /** For messages: `configmaps`, `configmaps in default`. */
  readonly name: string
  readonly #stats = newReflectorStats()
  readonly #options: ReflectorOptions<T>
  readonly #scope: ListOptions
  readonly #clock: Clock
  readonly #random: () => number
  readonly #feed: EventFeed<T>
  readonly #backoff: Backoff
  readonly #synced = Promise.withResolvers<void>()
  #hasSynced = false
  #started = false
  #listFailure: unknown
  #listingHandlers: readonly (() => void)[] = []
  /** Counts the times that the whole cache was listed again, so that a safety check under way sees that it is moot. */
  #epoch = 0
  #check: SafetyCheck<T> | undefined
  #endWatch: AbortController | undefined
  /** After an error the server may be another, older one: ask before resuming. */
  #mayHaveRewound = false
  /** The next list may show versions that we know with another content. */
  #hasRewound = false
  /** A continue token expired: the next list goes without pages. */
  #pagesExpire = false
  /** Watches in a row that brought nothing and ended at once or expired. */
  #fruitless = 0
  /** Watches in a row that broke at once without an event, although the server answered between them. */
  #brokenWatches = 0

  constructor(options: ReflectorOptions<T>) {
    this.#options = options
    this.type = options.type
    this.name = options.namespace ? `${options.type.plural} in ${options.namespace}` : options.type.plural
    this.#clock = options.clock ?? systemClock
    this.#random = options.random ?? Math.random
    this.#scope = {
      namespace: options.namespace,
      labelSelector: options.labelSelector === undefined ? undefined : parseLabelSelector(options.labelSelector).text || undefined,
      fieldSelector: options.fieldSelector,
    }
    this.#feed = new EventFeed<T>({
      transform: options.transform ?? withoutManagedFields,
      versionsOnly: options.versionsOnly,
      onError: (error) => this.#report(error, 'handler'),
    })
    this.#backoff = createBackoff({ baseMs: 500, maxMs: 30_000, random: this.#random, ...options.backoff })
    this.#synced.promise.catch(() => {}) // waiters see the rejection; without one it is no unhandled error
  }

  get store(): ReadonlyStore<T> {
    return this.#feed.store
  }

  get stats(): Readonly<ReflectorStats> {
    return this.#stats
  }

  /** True once the first list is complete and every handler has received it. It stays true. */
  get hasSynced(): boolean {
    return this.#hasSynced
  }

  /** The error of the latest list; undefined once one is answered. While there is one, the cache keeps what it has. */
  get listFailure(): unknown {
    return this.#listFailure
  }

  /** Called after the first complete list, when a list fails in another way than the one before, and when one is answered again. */
  addListingHandler(handler: () => void): () => void {
    const own = () => handler()
    this.#listingHandlers = [...this.#listingHandlers, own]
    return () => {
      this.#listingHandlers = this.#listingHandlers.filter((other) => other !== own)
    }
  }

  /** Rejects when the signal aborts, or when the reflector stops before its first list. */
  waitForSync(signal?: AbortSignal): Promise<void> {
    return signal === undefined ? this.#synced.promise : abortable(this.#synced.promise, signal)
  }

  /** Several may share the reflector; a late one is first told of what is there. Returns how to leave. */
  addHandler(handler: EventHandler<T>): () => void {
    return this.#feed.addHandler(handler)
  }

  /** Runs until the signal aborts; then it returns, it never throws. Once only. */
  async run(signal: AbortSignal): Promise<void> {
    if (this.#started) throw new TypeError(`the reflector of ${this.name} was started twice`)
    this.#started = true
    const safety = this.#runSafetyChecks(signal)
    while (!signal.aborted) await this.#step(signal)
    this.#synced.reject(new ThvError('aborted', `the cache of ${this.name} was stopped before its first list`))
    await safety
  }

  async #step(signal: AbortSignal): Promise<void> {
    let phase: ReflectorPhase = 'list'
    try {
      if (this.#mayHaveRewound) await this.#checkForRewind(signal)
      if (this.#stats.resourceVersion === undefined) await this.#list(signal)
      phase = 'watch'
      await this.#watch(this.#stats.resourceVersion ?? '', signal)
    } catch (error) {
      if (!signal.aborted) await this.#recover(error, phase, signal)
    }
  }

  /** Pages go into the cache as they come; only a complete list may say that something is gone. */
  async #list(signal: AbortSignal): Promise<void> {
    this.#epoch++
    const listed = new Set<string>()
    let version: string | undefined
    for await (const page of this.#pages(signal)) {
      version = page.metadata.resourceVersion
      for (const object of page.items) {
        listed.add(formatKey(keyOf(object)))
        this.#feed.upsert(object, { trustVersions: !this.#hasRewound })
      }
    }
    signal.throwIfAborted()
    this.#hasRewound = false
    this.#feed.retain(listed)
    if (this.#hasSynced) this.#stats.relists++
    this.#stats.resourceVersion = version ?? ''
    const isFirst = !this.#hasSynced
    this.#hasSynced = true
    this.#synced.resolve()
    this.#noteListing(undefined, { isFirst })
    if (this.#fruitless === 0 && this.#brokenWatches === 0) this.#backoff.reset() // else it is the watches that must get better
  }

  async *#pages(signal: AbortSignal) {
    const { client, type, pageSize = 500, pageTimeoutMs } = this.#options
    const options: ListOptions = { ...this.#scope, signal, timeoutMs: pageTimeoutMs }
    try {
      if (this.#pagesExpire) yield await client.list(type, options)
      else yield* client.listPages(type, { ...options, limit: pageSize })
    } catch (error) {
      this.#pagesExpire = isExpired(error)
      throw error
    }
    this.#pagesExpire = false
    this.#stats.lists++
  }

  async #watch(resourceVersion: string, signal: AbortSignal): Promise<void> {
    signal.throwIfAborted()
    const { client, type, watchTimeoutSeconds = 290 } = this.#options
    const end = new AbortController()
    const onStop = () => end.abort(signal.reason)
    signal.addEventListener('abort', onStop, { once: true })
    this.#endWatch = end
    const startedAt = this.#clock.monotonic()
    const eventsBefore = this.#stats.events
    this.#stats.watches++
    const stream = client.watch(type, {
      ...this.#scope,
      resourceVersion,
      allowBookmarks: true,
      timeoutSeconds: Math.ceil(this.#shorten(watchTimeoutSeconds)),
      signal: end.signal,
    })
    try {
      for await (const event of stream) {
        if (end.signal.aborted) break // what is still buffered is older than the repaired cache
        this.#takeEvent(event)
        if (this.#stats.resourceVersion === undefined) break
      }
    } catch (error) {
      if (this.#clock.monotonic() - startedAt >= HEALTHY_MS) this.#noteProgress()
      if (!end.signal.aborted) throw error
    } finally {
      this.#endWatch = undefined
      signal.removeEventListener('abort', onStop)
    }
    if (this.#stats.events > eventsBefore || this.#clock.monotonic() - startedAt >= FAST_MS) this.#noteProgress()
    else if (++this.#fruitless > 1) await this.#clock.sleep(this.#backoff.next(), signal)
  }

  #takeEvent(event: WatchEvent<T>): void {
    if (event.type === 'ERROR') throw new ThvError('kube_response_malformed', `the watch of ${this.name} passed on an ERROR event`)
    const { resourceVersion } = event.object.metadata
    if ((compareResourceVersions(resourceVersion, this.#stats.resourceVersion) ?? 0) < 0) {
      this.#noteRewind()
      return
    }
    this.#noteProgress()
    this.#stats.events++
    this.#stats.lastEventAt = this.#clock.now()
    if (resourceVersion !== undefined) this.#stats.resourceVersion = resourceVersion
    if (event.type === 'DELETED') {
      this.#check?.noteDeleted(event.object)
      this.#feed.remove(keyOf(event.object), event.object)
    } else if (event.type !== 'BOOKMARK') {
      this.#feed.upsert(event.object)
    }
  }

  #noteProgress(): void {
    this.#fruitless = 0
    this.#brokenWatches = 0
    this.#mayHaveRewound = false
    this.#backoff.reset()
  }

  /** A server restored from a backup would let us wait in silence until its versions pass ours. */
  async #checkForRewind(signal: AbortSignal): Promise<void> {
    const { client, type, pageTimeoutMs } = this.#options
    if (this.#stats.resourceVersion !== undefined) {
      const page = await client.list(type, { ...this.#scope, limit: 1, signal, timeoutMs: pageTimeoutMs })
      if ((compareResourceVersions(page.metadata.resourceVersion, this.#stats.resourceVersion) ?? 0) < 0) this.#noteRewind()
      else this.#noteListing(undefined)
    }
    this.#mayHaveRewound = false
  }

  #noteListing(failure: unknown, { isFirst = false } = {}): void {
    const before = this.#listFailure
    const isNews = isFirst || (failure === undefined) !== (before === undefined) || statusOf(failure) !== statusOf(before)
    this.#listFailure = failure
    if (!isNews) return
    for (const handler of this.#listingHandlers) {
      try {
        handler()
      } catch (error) {
        this.#report(error, 'handler')
      }
    }
  }

  #noteRewind(): void {
    this.#hasRewound = true
    this.#stats.rewinds++
    this.#stats.resourceVersion = undefined
  }

  async #recover(error: unknown, phase: ReflectorPhase, signal: AbortSignal): Promise<void> {
    let delay = 0
    if (isExpired(error)) {
      this.#stats.expired++
      this.#stats.resourceVersion = undefined
      if (++this.#fruitless > 1) delay = this.#backoff.next()
    } else {
      this.#mayHaveRewound = true
      if (phase === 'watch' && ++this.#brokenWatches % PATIENCE === 0) this.#abandonVersion()
      delay = Math.max(this.#backoff.next(), askedDelay(error))
      this.#report(error, phase)
      if (phase === 'list') this.#noteListing(error)
    }
    try {
      await this.#clock.sleep(delay, signal)
    } catch (reason) {
      if (!signal.aborted) throw reason
    }
  }

  /**
   * Some versions cannot be watched from, whatever is tried: at the edge of a compaction the server answers 500, an event may be too
   * large for something between. A list gets past them; where watching is not possible at all, lists keep the cache from growing old.
   */
  #abandonVersion(): void {
    this.#stats.abandoned++
    this.#stats.resourceVersion = undefined
  }

  async #runSafetyChecks(signal: AbortSignal): Promise<void> {
    const { safetyRelistMs = 30 * 60_000 } = this.#options
    while (safetyRelistMs > 0 && !signal.aborted) {
      try {
        await this.#clock.sleep(this.#shorten(safetyRelistMs), signal)
        if (this.#stats.resourceVersion !== undefined) await this.#checkSafety(signal)
      } catch (error) {
        if (!signal.aborted) this.#report(error, 'safety')
      }
    }
  }

  async #checkSafety(signal: AbortSignal): Promise<void> {
    const epoch = this.#epoch
    const versionBefore = this.#stats.resourceVersion
    const check = new SafetyCheck<T>(this.#feed.store)
    this.#check = check
    try {
      for await (const page of this.#pages(signal)) check.addPage(page.items, page.metadata.resourceVersion)
      const suspects = check.missed()
      if (suspects.updates.length + suspects.deletions.length > 0) await this.#clock.sleep(this.#options.safetyGraceMs ?? 5_000, signal)
    } finally {
      this.#check = undefined
    }
    this.#stats.safetyChecks++
    if (epoch !== this.#epoch || this.#stats.resourceVersion === undefined) return // a list meanwhile has put everything right
    if ((compareResourceVersions(check.listVersion, versionBefore) ?? 0) < 0) {
      this.#noteRewind()
      this.#endWatch?.abort()
    } else {
      this.#repair(check)
    }
  }

  /** The watch is not to be trusted either: another one begins, behind nothing that the cache has seen. */
  #repair(check: SafetyCheck<T>): void {
    const { updates, deletions } = check.missed()
    if (updates.length + deletions.length === 0) return
    this.#stats.missed += updates.length + deletions.length
    for (const key of deletions) this.#feed.remove(key)
    for (const object of updates) this.#feed.upsert(object)
    const { resourceVersion } = this.#stats
    if ((compareResourceVersions(resourceVersion, check.listVersion) ?? 0) < 0) this.#stats.resourceVersion = check.listVersion
    this.#endWatch?.abort()
  }

  #shorten(value: number): number {
    return value * (1 - 0.2 * this.#random())
  }

  #report(error: unknown, phase: ReflectorPhase): void {
    this.#stats.errors++
    try {
      this.#options.onError?.(error, phase)
    } catch {
      this.#stats.errors++ // the error handler itself failed
    }
  }
}

/** A watch that lives shorter than this without an event did not do what a watch does. */
const FAST_MS = 1_000

/** One that lived this long before it broke did work. */
const HEALTHY_MS = 10_000

/** So many broken watches in a row from one version, and it is given up. */
const PATIENCE = 3

/** Of an answer of the server; undefined when there was none. */
function statusOf(error: unknown): number | undefined {
  return error instanceof KubeApiError ? error.status : undefined
}

/** The delay that the server asked for, within reason. */
function askedDelay(error: unknown): number {
  return error instanceof KubeApiError ? Math.min(60, error.retryAfterSeconds ?? 0) * 1_000 : 0
}
