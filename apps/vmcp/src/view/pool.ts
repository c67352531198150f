interface Entry<T> {
  readonly value: T
  size: number
  users: number
}

/** Values by key, each kept once for all of its users. */
export class Pool<T> {
  readonly #entries = new Map<string, Entry<T>>()
  readonly #sizeOf: (value: T) => number
  #size = 0

  constructor(sizeOf: (value: T) => number) {
    this.#sizeOf = sizeOf
  }

  get count(): number {
    return this.#entries.size
  }

  /** Of all values together. */
  get size(): number {
    return this.#size
  }

  sizeOf(key: string): number {
    return this.#entries.get(key)?.size ?? 0
  }

  /** One more user of the value. It is made by the first. */
  take(key: string, make: () => T): T {
    let entry = this.#entries.get(key)
    if (entry === undefined) {
      const value = make()
      entry = { value, size: this.#sizeOf(value), users: 0 }
      this.#entries.set(key, entry)
      this.#size += entry.size
    }
    entry.users++
    return entry.value
  }

  /** Something was made of the value that is kept as long as the value is. Does nothing for one that has gone. */
  grow(value: T, by: number): void {
    for (const entry of this.#entries.values()) {
      if (entry.value !== value) continue
      entry.size += by
      this.#size += by
      return
    }
  }

  /** One user less. The value goes with the last. */
  release(key: string): void {
    const entry = this.#entries.get(key)
    if (entry === undefined || --entry.users > 0) return
    this.#entries.delete(key)
    this.#size -= entry.size
  }
}
