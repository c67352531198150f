/** Cost of a chunk beside its bytes, so that a flood of tiny ones counts too. */
const OVERHEAD = 128

/** Chunks on their way from a socket to one reader. It takes what comes: the writer watches `size` and stops the socket. */
export class ByteQueue implements AsyncIterable<Buffer> {
  readonly #onRead: () => void
  #chunks: Buffer[] = []
  #size = 0
  #ended = false
  #wake: (() => void) | undefined
  #isRead = false

  /** `onRead` is called after each chunk that was taken out. */
  constructor(onRead: () => void) {
    this.#onRead = onRead
  }

  get size(): number {
    return this.#size
  }

  push(chunk: Buffer): void {
    if (this.#ended || chunk.length === 0) return
    this.#chunks.push(chunk)
    this.#size += chunk.length + OVERHEAD
    this.#wake?.()
  }

  /** Chunks in the queue can still be read. */
  end(): void {
    this.#ended = true
    this.#wake?.()
  }

  /** For one reader. Leaving the loop ends reading: what still comes is dropped, so that it cannot block the rest. */
  [Symbol.asyncIterator](): AsyncIterator<Buffer, undefined> {
    if (this.#isRead) throw new TypeError('a stream of a pod has one reader')
    this.#isRead = true
    return {
      next: async () => {
        while (this.#chunks.length === 0 && !this.#ended) {
          await new Promise<void>((resolve) => {
            this.#wake = resolve
          })
          this.#wake = undefined
        }
        const value = this.#chunks.shift()
        if (value === undefined) return { done: true, value: undefined }
        this.#size -= value.length + OVERHEAD
        this.#onRead()
        return { done: false, value }
      },
      return: async () => {
        this.#ended = true
        this.#chunks = []
        this.#size = 0
        this.#onRead()
        return { done: true, value: undefined }
      },
    }
  }
}
