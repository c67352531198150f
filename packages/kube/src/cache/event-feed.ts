import { jsonEqual } from '@thv/kernel/json'
import { formatKey, keyOf } from '../objects/object-key.ts'
import type { KubeObject, ObjectKey } from '../objects/types.ts'
import { ObjectStore } from './store.ts'

/** A change of a cache. `MODIFIED` always carries the state before; `DELETED` the last one that the cache held. */
export interface ObjectEvent<T extends KubeObject = KubeObject> {
  type: 'ADDED' | 'MODIFIED' | 'DELETED'
  /** For `DELETED` the final state if the server sent it, else the last one known. */
  object: T
  old?: T
}

/** Called in the order of the changes, after the store holds them. It must not block: put work into a queue. */
export type EventHandler<T extends KubeObject = KubeObject> = (event: ObjectEvent<T>) => void

export interface EventFeedOptions<T extends KubeObject> {
  transform?: ((object: T) => T) | undefined
  /** The store keeps versions alone. Events carry the transformed object all the same, but for `old`, and for the objects that a late handler receives. */
  versionsOnly?: boolean | undefined
  /** Told what handlers and index functions throw; neither stops the feed. */
  onError: (error: unknown) => void
}

interface Subscription<T extends KubeObject> {
  readonly handler: EventHandler<T>
  active: boolean
}

/** A store that tells its handlers of each change, exactly once and in order: who replays the events has the store's content. */
export class EventFeed<T extends KubeObject = KubeObject> {
  readonly store: ObjectStore<T>
  readonly #onError: (error: unknown) => void
  readonly #versionsOnly: boolean
  /** Replaced, never changed, so that a handler may add or remove handlers while an event is given out. */
  #subscriptions: readonly Subscription<T>[] = []

  constructor(options: EventFeedOptions<T>) {
    this.store = new ObjectStore<T>({ transform: options.transform, onError: options.onError })
    this.#onError = options.onError
    this.#versionsOnly = options.versionsOnly ?? false
  }

  /** A late handler is first told of what is there already. Returns how to leave. */
  addHandler(handler: EventHandler<T>): () => void {
    const subscription: Subscription<T> = { handler, active: true }
    const present = this.store.list()
    this.#subscriptions = [...this.#subscriptions, subscription]
    for (const object of present) this.#tell(subscription, { type: 'ADDED', object })
    return () => {
      subscription.active = false
      this.#subscriptions = this.#subscriptions.filter((other) => other !== subscription)
    }
  }

  /**
   * Another uid under a known name is another object: the old one is gone. The same resourceVersion is no news, unless versions are not
   * to be trusted because the server gave them out twice.
   */
  upsert(object: T, options: { trustVersions: boolean } = { trustVersions: true }): void {
    const next = this.store.transform(object)
    const old = this.store.get(next.metadata)
    if (old !== undefined && old.metadata.uid === next.metadata.uid) {
      if (isSameVersion(old, next) && (options.trustVersions || (!this.#versionsOnly && jsonEqual(old, next)))) return
      this.#keep(next)
      this.#emit({ type: 'MODIFIED', object: next, old })
      return
    }
    if (old !== undefined) this.remove(next.metadata)
    this.#keep(next)
    this.#emit({ type: 'ADDED', object: next })
  }

  /** `final` is the state that the server sent with the deletion. An unknown key is no news. */
  remove(key: ObjectKey, final?: T): void {
    const old = this.store.delete(key)
    if (old === undefined) return
    this.#emit({ type: 'DELETED', object: final === undefined ? old : this.store.transform(final), old })
  }

  /** Removes whatever is not named, by `formatKey`. */
  retain(keys: ReadonlySet<string>): void {
    for (const object of this.store.list()) {
      const key = keyOf(object)
      if (!keys.has(formatKey(key))) this.remove(key)
    }
  }

  #keep(object: T): void {
    this.store.set(this.#versionsOnly ? versionOf(object) : object)
  }

  #emit(event: ObjectEvent<T>): void {
    for (const subscription of this.#subscriptions) this.#tell(subscription, event)
  }

  #tell(subscription: Subscription<T>, event: ObjectEvent<T>): void {
    if (!subscription.active) return
    try {
      const result: unknown = subscription.handler(event)
      if (result instanceof Promise) result.catch(this.#onError) // an async function also fits the type
    } catch (error) {
      this.#onError(error)
    }
  }
}

/** The identity and version of an object, which tell one of its states from another. */
function versionOf<T extends KubeObject>({ metadata: { namespace, name, uid, resourceVersion } }: T): T {
  return { metadata: { namespace, name, uid, resourceVersion } } as T
}

/** Servers that give no versions always bring news. */
function isSameVersion(a: KubeObject, b: KubeObject): boolean {
  return a.metadata.resourceVersion !== undefined && a.metadata.resourceVersion === b.metadata.resourceVersion
}
