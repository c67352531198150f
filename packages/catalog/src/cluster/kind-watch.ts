import { createBackoff } from '@thv/kernel/backoff'
import type { Clock } from '@thv/kernel/clock'
import { errorMessage } from '@thv/kernel/errors'
import { linkSignals } from '@thv/kernel/lifecycle'
import type { KubeClient, KubeObject, ObjectEvent, ReadonlyStore, ResourceType } from '@thv/kube'
import { isForbidden, isNotFound, keyOf, ObjectStore, Reflector } from '@thv/kube'
import type { KindVersions } from './cluster-kinds.ts'

export interface KindWatchOptions {
  readonly client: KubeClient
  readonly clock: Clock
  readonly random: () => number
  readonly kind: KindVersions
  /** Undefined: all. */
  readonly namespace?: string | undefined
  readonly labelSelector?: string | undefined
  /** Cuts an object down to the part that events carry. Nothing but its version is kept here. */
  readonly keep: (object: KubeObject) => KubeObject
  /** From one comparison with a fresh list to the next. */
  readonly checkMs: number
  /** From one look for an absent or forbidden kind to the next, with jitter. */
  readonly probeMs: number
  readonly onEvent: (event: ObjectEvent) => void
  readonly onState: () => void
}

/** `forbidden`: what was known stays until the right is there again. */
export type KindState = 'starting' | 'synced' | 'absent' | 'forbidden'

const MISSES = 2
const AGAIN_MS = 500

/**
 * Follows one kind that the cluster may not have, or may lose. Only a 404 counts as absent, seen twice; then everything known is
 * gone, and the kind is looked for now and then.
 *
 * It runs a Reflector, as the caches of SharedCaches do, but is none of these. They are there for kinds without which a program cannot
 * work: all are synced before its controllers begin, they last as long as it does, an error of theirs is a fault to report, and their
 * readers find the objects there. A kind of this one must not hold up the program when it is absent or forbidden, reports which of both it is, is followed
 * only while somebody exports, and keeps versions alone, since who reads the events has what it needs of the objects.
 */
export class KindWatch {
  readonly #options: KindWatchOptions
  /** Versions of all objects that events have reported; one that is there twice is reported twice when it goes. */
  #told: readonly ReadonlyStore[] = []
  #state: KindState = 'starting'
  #problem = ''
  #missed = 0
  #left = false

  constructor(options: KindWatchOptions) {
    this.#options = options
  }

  get state(): KindState {
    return this.#state
  }

  /** Why it may not be read. */
  get problem(): string {
    return this.#problem
  }

  /** Changes that the watch did not bring and a comparison with a fresh list found. */
  get missed(): number {
    return this.#missed
  }

  /** Everything known is gone, and later events are dropped. The signal of `run` ends the watch itself. */
  leave(): void {
    this.#forgetAll()
    this.#left = true
  }

  /** Until the signal aborts; never rejects. */
  async run(signal: AbortSignal): Promise<void> {
    const { clock, random, probeMs } = this.#options
    const backoff = createBackoff({ baseMs: Math.min(200, probeMs), maxMs: probeMs, random })
    let misses = 0
    while (!signal.aborted) {
      let waitMs: number
      try {
        const served = await this.#probe(signal)
        backoff.reset()
        misses = served === 'absent' ? misses + 1 : 0
        if (served === 'forbidden') this.#enter('forbidden')
        else if (served !== 'absent') await this.#follow(served, signal)
        else if (misses >= MISSES) this.#clear()
        // Also forbidden where it may be listed and not watched: a list each half second would be no way to follow it.
        const isOver = served === 'absent' || this.#state === 'forbidden'
        waitMs = misses === 1 || !isOver ? AGAIN_MS : probeMs * (0.8 + 0.4 * random())
      } catch (error) {
        this.#problem = errorMessage(error)
        waitMs = backoff.next()
      }
      await clock.sleep(waitMs, signal).catch(() => {}) // the loop sees the abort
    }
  }

  async #probe(signal: AbortSignal): Promise<ResourceType | 'absent' | 'forbidden'> {
    const { client, kind, namespace } = this.#options
    for (const version of kind) {
      try {
        await client.list(version, { limit: 1, signal, ...(namespace !== undefined && { namespace }) })
        return version
      } catch (error) {
        if (isNotFound(error)) continue
        if (!isForbidden(error)) throw error
        this.#problem = errorMessage(error)
        return 'forbidden'
      }
    }
    return 'absent'
  }

  /** Until the kind is not there any more, or may not be read. */
  async #follow(type: ResourceType, signal: AbortSignal): Promise<void> {
    const { client, clock, random, namespace, labelSelector, keep, checkMs } = this.#options
    const over = new AbortController()
    let notFound = 0
    const reflector = new Reflector({
      client,
      type,
      namespace,
      labelSelector,
      transform: keep,
      versionsOnly: true,
      clock,
      random,
      safetyRelistMs: checkMs,
      onError: (error) => {
        notFound = isNotFound(error) ? notFound + 1 : 0
        if (isForbidden(error)) {
          this.#problem = errorMessage(error)
          this.#enter('forbidden')
        }
        if (isForbidden(error) || notFound >= MISSES) over.abort()
      },
    })
    const before = this.#told
    this.#told = [...before, reflector.store]
    reflector.addHandler((event) => {
      if (!this.#left) this.#options.onEvent(event)
    })
    const stop = linkSignals(signal, over.signal)
    const running = reflector.run(stop)
    let isComplete = false
    try {
      await reflector.waitForSync(stop)
      isComplete = true
      for (const object of allOf(before)) if (reflector.store.get(keyOf(object)) === undefined) this.#forget(object)
      this.#told = [reflector.store]
      if (!over.signal.aborted) this.#enter('synced')
    } catch {
      // Stopped before its first list: the loop looks again.
    }
    await running
    if (!isComplete) this.#told = [joined(this.#told)]
    this.#missed += reflector.stats.missed
  }

  #forget(object: KubeObject): void {
    if (!this.#left) this.#options.onEvent({ type: 'DELETED', object })
  }

  #forgetAll(): void {
    const all = allOf(this.#told)
    this.#told = []
    for (const object of all) this.#forget(object)
  }

  #clear(): void {
    this.#forgetAll()
    this.#enter('absent')
  }

  #enter(state: KindState): void {
    if (state === 'synced' || state === 'absent') this.#problem = ''
    if (this.#state === state || this.#left) return
    this.#state = state
    this.#options.onState()
  }
}

function allOf(stores: readonly ReadonlyStore[]): KubeObject[] {
  return stores.flatMap((store) => store.list())
}

function joined(stores: readonly ReadonlyStore[]): ReadonlyStore {
  const all = new ObjectStore()
  for (const object of allOf(stores)) all.set(object)
  return all
}
