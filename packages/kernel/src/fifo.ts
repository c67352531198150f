/** A place in a Fifo, to take its value out again in constant time wherever it stands. */
export interface FifoEntry<T> {
  readonly value: T
  previous: FifoEntry<T> | undefined
  next: FifoEntry<T> | undefined
  listed: boolean
}

/** A doubly linked list: an array shifts slowly when it is long, and cannot drop a waiter from its middle cheaply. */
export class Fifo<T> {
  #first: FifoEntry<T> | undefined
  #last: FifoEntry<T> | undefined
  #size = 0

  get size(): number {
    return this.#size
  }

  push(value: T): FifoEntry<T> {
    const entry: FifoEntry<T> = { value, previous: this.#last, next: undefined, listed: true }
    if (this.#last) this.#last.next = entry
    else this.#first = entry
    this.#last = entry
    this.#size++
    return entry
  }

  /** The entry, not the value: a value may itself be undefined. */
  shift(): FifoEntry<T> | undefined {
    const entry = this.#first
    if (entry) this.remove(entry)
    return entry
  }

  /** False when the entry has left already. */
  remove(entry: FifoEntry<T>): boolean {
    if (!entry.listed) return false
    const { previous, next } = entry
    if (previous) previous.next = next
    else this.#first = next
    if (next) next.previous = previous
    else this.#last = previous
    entry.listed = false
    entry.previous = undefined
    entry.next = undefined
    this.#size--
    return true
  }
}
