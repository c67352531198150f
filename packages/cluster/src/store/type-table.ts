import { ChangeLog, type LogLimits } from './change-log.ts'
import type { StoredObject } from './stored-object.ts'

/** The objects of one type with their keys in the order in which lists are paged. */
export class TypeTable {
  readonly log: ChangeLog
  readonly #objects = new Map<string, StoredObject>()
  #keys: string[] = []
  #sorted = true

  constructor(since: number, limits: LogLimits) {
    this.log = new ChangeLog(since, limits)
  }

  get size(): number {
    return this.#objects.size
  }

  get(key: string): StoredObject | undefined {
    return this.#objects.get(key)
  }

  /** Without order: for loading. */
  load(object: StoredObject): void {
    this.#objects.set(object.key, object)
    this.#keys.push(object.key)
    this.#sorted = false
  }

  put(object: StoredObject): void {
    if (!this.#objects.has(object.key)) {
      const keys = this.#inOrder()
      keys.splice(place(keys, object.key), 0, object.key)
    }
    this.#objects.set(object.key, object)
  }

  delete(key: string): void {
    if (!this.#objects.delete(key)) return
    const keys = this.#inOrder()
    keys.splice(place(keys, key), 1)
  }

  /** All objects whose key begins with `prefix`, as they were at `revision`, which must not be older than the log. */
  at(revision: number, prefix: string): StoredObject[] {
    const rolledBack = new Map<string, StoredObject | undefined>()
    for (const change of this.log.backTo(revision)) rolledBack.set(change.current.key, change.previous)
    const keys = rolledBack.size === 0 ? this.#inOrder() : sortedKeys([...new Set([...this.#inOrder(), ...rolledBack.keys()])])
    const found: StoredObject[] = []
    for (let at = place(keys, prefix); at < keys.length; at++) {
      const key = keys[at] ?? ''
      if (!key.startsWith(prefix)) break
      const object = rolledBack.has(key) ? rolledBack.get(key) : this.#objects.get(key)
      if (object !== undefined) found.push(object)
    }
    return found
  }

  #inOrder(): string[] {
    if (!this.#sorted) this.#keys = sortedKeys(this.#keys)
    this.#sorted = true
    return this.#keys
  }
}

/** Where `key` stands, or would. Keys are ASCII, so the order of strings is that of bytes. */
function place(keys: readonly string[], key: string): number {
  let [low, high] = [0, keys.length]
  while (low < high) {
    const middle = (low + high) >> 1
    if ((keys[middle] ?? '') < key) low = middle + 1
    else high = middle
  }
  return low
}

function sortedKeys(keys: string[]): string[] {
  return keys.sort((a, b) => (a < b ? -1 : 1))
}
