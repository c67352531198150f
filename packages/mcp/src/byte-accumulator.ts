const FIRST_CAPACITY = 1024

/** Puts a piece of a stream together that came in many chunks. Grows by doubling, so even one byte at a time costs little. */
export class ByteAccumulator {
  #bytes: Buffer | undefined
  #length = 0

  get length(): number {
    return this.#length
  }

  /** Copies: the source may use the memory of its chunk again. */
  append(chunk: Uint8Array): void {
    const needed = this.#length + chunk.length
    if (this.#bytes === undefined || this.#bytes.length < needed) {
      const larger = Buffer.allocUnsafe(Math.max(needed, 2 * (this.#bytes?.length ?? 0), FIRST_CAPACITY))
      this.#bytes?.copy(larger, 0, 0, this.#length)
      this.#bytes = larger
    }
    this.#bytes.set(chunk, this.#length)
    this.#length = needed
  }

  /** Everything so far and `rest` behind it; then it is empty. Without anything so far it is `rest` itself, not a copy. */
  take(rest: Uint8Array): Buffer {
    if (this.#bytes === undefined) return asBuffer(rest)
    this.append(rest)
    const taken = this.#bytes.subarray(0, this.#length)
    this.clear()
    return taken
  }

  clear(): void {
    this.#bytes = undefined
    this.#length = 0
  }
}

function asBuffer(bytes: Uint8Array): Buffer {
  return Buffer.isBuffer(bytes) ? bytes : Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength)
}
