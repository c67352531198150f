/** More than this many at a time are looked up by hash. */
const SMALL = 16

/**
 * A Map for a few entries that come and go all the time, in the order in which they came. A Map that is filled and emptied again and again takes a new
 * table every few entries, and the old ones hold on to what was in them until the next full collection.
 */
export class SmallMap<K extends string | number | object, V> {
  readonly #keys: K[] = []
  readonly #values: V[] = []
  /** Holds everything instead, from the first entry too many until it is empty again. */
  #large: Map<K, V> | undefined

  get size(): number {
    return this.#large?.size ?? this.#keys.length
  }

  has(key: K): boolean {
    return this.#large?.has(key) ?? this.#keys.includes(key)
  }

  get(key: K): V | undefined {
    if (this.#large !== undefined) return this.#large.get(key)
    const at = this.#keys.indexOf(key)
    return at < 0 ? undefined : this.#values[at]
  }

  set(key: K, value: V): void {
    if (this.#large !== undefined) {
      this.#large.set(key, value)
      return
    }
    const at = this.#keys.indexOf(key)
    if (at >= 0) this.#values[at] = value
    else if (this.#keys.length < SMALL) {
      this.#keys.push(key)
      this.#values.push(value)
    } else this.#grow().set(key, value)
  }

  delete(key: K): boolean {
    if (this.#large !== undefined) {
      const isThere = this.#large.delete(key)
      if (this.#large.size === 0) this.#large = undefined
      return isThere
    }
    const at = this.#keys.indexOf(key)
    if (at < 0) return false
    if (at === this.#keys.length - 1) {
      this.#keys.pop()
      this.#values.pop()
    } else {
      this.#keys.splice(at, 1)
      this.#values.splice(at, 1)
    }
    return true
  }

  /** As they are now: entries may be added and deleted meanwhile. */
  entries(): readonly (readonly [K, V])[] {
    return this.#large === undefined ? this.#keys.map((key, at) => [key, this.#values[at] as V] as const) : [...this.#large]
  }

  #grow(): Map<K, V> {
    const large = new Map(this.entries())
    this.#keys.length = this.#values.length = 0
    this.#large = large
    return large
  }
}
