export interface Placed {
  /** Belongs to the list: where the item stands in it, -1 for nowhere. */
  place: number
}

/**
 * Items in no order, each of which knows its place, so that one is taken out in constant time. A Set would do, but when one grows and
 * shrinks all the time V8 leaves dead tables behind that hold on to what was in them: that was measured to cost 80 MB.
 */
export class PlacedList<T extends Placed> {
  readonly #items: T[] = []

  get size(): number {
    return this.#items.length
  }

  add(item: T): void {
    item.place = this.#items.length
    this.#items.push(item)
  }

  /** Does nothing when it is not there. */
  delete(item: T): void {
    const { place } = item
    if (this.#items[place] !== item) return
    item.place = -1
    const last = this.#items.pop()
    if (last === undefined || last === item) return
    this.#items[place] = last
    last.place = place
  }

  clear(): void {
    this.#items.length = 0
  }

  /** Items must not be added or deleted meanwhile; `[...list]` is a copy for that. */
  [Symbol.iterator](): IterableIterator<T> {
    return this.#items[Symbol.iterator]()
  }
}
