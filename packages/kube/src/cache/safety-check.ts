import { compareResourceVersions, formatKey, keyOf } from '../objects/object-key.ts'
import type { KubeObject, ObjectKey } from '../objects/types.ts'
import type { ObjectStore } from './store.ts'

export interface MissedEvents<T extends KubeObject> {
  /** States that the cache should have had. */
  readonly updates: readonly T[]
  readonly deletions: readonly ObjectKey[]
}

/**
 * Compares a cache with a fresh list while the watch that feeds the cache goes on. The cache may rightly be ahead of the list
 * (versions are compared), or have deleted something since (`noteDeleted`); what still differs otherwise, after a time of grace for
 * events under way, was missed.
 */
export class SafetyCheck<T extends KubeObject> {
  readonly #store: ObjectStore<T>
  readonly #listed = new Set<string>()
  readonly #suspects: T[] = []
  readonly #deletedAt = new Map<string, string | undefined>()
  #listVersion: string | undefined

  constructor(store: ObjectStore<T>) {
    this.#store = store
  }

  get listVersion(): string | undefined {
    return this.#listVersion
  }

  /** Keeps only what differs, so that the check of a large kind needs little memory. */
  addPage(objects: readonly T[], listVersion: string | undefined): void {
    this.#listVersion = listVersion
    for (const object of objects) {
      this.#listed.add(formatKey(keyOf(object)))
      if (this.#isBehind(object)) this.#suspects.push(this.#store.transform(object))
    }
  }

  /** Receives every deletion that the watch brings while the check runs. */
  noteDeleted(object: T): void {
    this.#deletedAt.set(formatKey(keyOf(object)), object.metadata.resourceVersion)
  }

  missed(): MissedEvents<T> {
    const deletions: ObjectKey[] = []
    for (const object of this.#store.values()) {
      const key = keyOf(object)
      if (!this.#listed.has(formatKey(key)) && this.#isCovered(object.metadata.resourceVersion)) deletions.push(key)
    }
    return { updates: this.#suspects.filter((object) => this.#isBehind(object)), deletions }
  }

  /** The list is the whole truth up to its version: whatever the cache learnt up to there must be as listed. */
  #isBehind(listed: T): boolean {
    const cached = this.#store.get(listed.metadata)
    if (cached !== undefined) {
      const { uid, resourceVersion } = cached.metadata
      return (resourceVersion !== listed.metadata.resourceVersion || uid !== listed.metadata.uid) && this.#isCovered(resourceVersion)
    }
    const key = formatKey(keyOf(listed))
    return !this.#deletedAt.has(key) || this.#isCovered(this.#deletedAt.get(key))
  }

  /** Versions without an order prove nothing. */
  #isCovered(version: string | undefined): boolean {
    const order = compareResourceVersions(version, this.#listVersion)
    return order !== undefined && order <= 0
  }
}
