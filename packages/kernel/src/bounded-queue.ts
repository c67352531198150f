import { ThvError } from './errors.ts'
import { Fifo } from './fifo.ts'

interface Pusher<T> {
  readonly item: T
  settle(error?: unknown): void
}

interface Reader<T> {
  settle(result: Taken<T>): void
}

type Taken<T> = { readonly item: T } | undefined

/**
 * First in, first out, between any number of writers and readers. A writer waits while the queue is full: that is how a
 * slow reader slows its writers down. Waiting writers and readers are served in the order in which they came.
 */
export class BoundedQueue<T> implements AsyncIterable<T> {
  readonly capacity: number
  readonly #items = new Fifo<T>()
  readonly #pushers = new Fifo<Pusher<T>>() // not empty only while the items are full
  readonly #readers = new Fifo<Reader<T>>() // not empty only while there are no items
  #closed = false

  constructor(capacity: number) {
    if (!Number.isInteger(capacity) || capacity < 1) throw new RangeError(`a queue needs a capacity of at least 1, not ${capacity}`)
    this.capacity = capacity
  }

  /** Items that can be read at once; those of waiting writers are not counted. */
  get size(): number {
    return this.#items.size
  }

  get closed(): boolean {
    return this.#closed
  }

  /** Resolves when the item is in the queue. Rejects, and the item is not taken, with `queue_closed` or with `signal.reason`. */
  push(item: T, signal?: AbortSignal): Promise<void> {
    if (signal?.aborted) return Promise.reject(signal.reason)
    if (this.tryPush(item)) return Promise.resolve()
    if (this.#closed) return Promise.reject(closedError())
    return new Promise((resolve, reject) => {
      const pusher: Pusher<T> = {
        item,
        settle: (error) => {
          signal?.removeEventListener('abort', onAbort)
          if (error === undefined) resolve()
          else reject(error)
        },
      }
      const entry = this.#pushers.push(pusher)
      const onAbort = () => {
        if (this.#pushers.remove(entry)) reject(signal?.reason)
      }
      signal?.addEventListener('abort', onAbort, { once: true })
    })
  }

  /** False when the queue is full or closed; the item is not taken then. */
  tryPush(item: T): boolean {
    if (this.#closed) return false
    const reader = this.#readers.shift()
    if (reader) {
      reader.value.settle({ item })
      return true
    }
    if (this.#items.size >= this.capacity) return false
    this.#items.push(item)
    return true
  }

  /** The next item; undefined once the queue is closed and empty. Rejects with `signal.reason`, and then takes nothing. */
  async shift(signal?: AbortSignal): Promise<T | undefined> {
    return (await this.#take(signal))?.item
  }

  /** No more items are taken: waiting writers get `queue_closed`, readers get what is left and then the end. */
  close(): void {
    if (this.#closed) return
    this.#closed = true
    for (let pusher = this.#pushers.shift(); pusher; pusher = this.#pushers.shift()) pusher.value.settle(closedError())
    for (let reader = this.#readers.shift(); reader; reader = this.#readers.shift()) reader.value.settle(undefined)
  }

  /** Reads until closed and empty. Leaving the loop early does not close the queue: there may be other readers. */
  [Symbol.asyncIterator](): AsyncIterator<T, undefined> {
    return {
      next: async () => {
        const taken = await this.#take()
        return taken ? { done: false, value: taken.item } : { done: true, value: undefined }
      },
    }
  }

  #take(signal?: AbortSignal): Promise<Taken<T>> {
    if (signal?.aborted) return Promise.reject(signal.reason)
    const first = this.#items.shift()
    if (first) {
      this.#admitPusher()
      return Promise.resolve({ item: first.value })
    }
    if (this.#closed) return Promise.resolve(undefined)
    return new Promise((resolve, reject) => {
      const reader: Reader<T> = {
        settle: (result) => {
          signal?.removeEventListener('abort', onAbort)
          resolve(result)
        },
      }
      const entry = this.#readers.push(reader)
      const onAbort = () => {
        if (this.#readers.remove(entry)) reject(signal?.reason)
      }
      signal?.addEventListener('abort', onAbort, { once: true })
    })
  }

  #admitPusher(): void {
    const pusher = this.#pushers.shift()
    if (!pusher) return
    this.#items.push(pusher.value.item)
    pusher.value.settle()
  }
}

function closedError(): ThvError {
  return new ThvError('queue_closed', 'the queue is closed')
}
