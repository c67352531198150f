import { ByteAccumulator } from '@thv/mcp/byte-accumulator'

const NOTHING = Buffer.alloc(0)

/** A body that is kept until it is whole. Mostly it comes as one chunk, and then it is that chunk, not a copy. */
export class HeldBody {
  #only: Buffer | undefined
  /** Everything, from the second chunk on. */
  #all: ByteAccumulator | undefined

  get length(): number {
    return (this.#only ?? this.#all)?.length ?? 0
  }

  append(chunk: Buffer): void {
    if (this.#only === undefined && this.#all === undefined) {
      this.#only = chunk
      return
    }
    this.#all ??= new ByteAccumulator()
    if (this.#only !== undefined) this.#all.append(this.#only)
    this.#only = undefined
    this.#all.append(chunk)
  }

  /** The bytes so far; to be called once. */
  take(): Buffer {
    return this.#only ?? this.#all?.take(NOTHING) ?? NOTHING
  }
}
