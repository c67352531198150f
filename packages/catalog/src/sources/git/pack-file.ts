import { createHash, randomUUID } from 'node:crypto'
import { closeSync, openSync, readSync, unlinkSync, writeSync } from 'node:fs'
import { join } from 'node:path'
import { failed, overLimit } from './git-error.ts'

const HEADER_BYTES = 12
const TRAILER_BYTES = 20

export interface PackFileOptions {
  readonly tempDir: string
  readonly maxObjects: number
}

/** A pack as it came, on disk: its size is bounded by what may come over the wire, not by memory. */
export class PackFile implements Disposable {
  readonly #fd: number
  readonly #path: string | undefined
  readonly #maxObjects: number
  readonly #hash = createHash('sha1')
  /** The last bytes so far: perhaps the checksum, which is not part of what it sums. */
  #tail: Buffer = Buffer.alloc(0)
  #head: Buffer = Buffer.alloc(0)
  #size = 0
  #closed = false

  constructor({ tempDir, maxObjects }: PackFileOptions) {
    const path = join(tempDir, `git-${randomUUID()}.pack`)
    this.#maxObjects = maxObjects
    try {
      this.#fd = openSync(path, 'wx+', 0o600)
    } catch (cause) {
      throw failed('no temporary file can be made for the git repository', cause)
    }
    // Without a name it is gone with the process, however that ends. Windows keeps a name until the file is closed.
    this.#path = process.platform === 'win32' ? path : undefined
    if (this.#path === undefined) unlinkSync(path)
  }

  get objectCount(): number {
    return this.#head.readUInt32BE(8)
  }

  get objectsStart(): number {
    return HEADER_BYTES
  }

  get objectsEnd(): number {
    return this.#size - TRAILER_BYTES
  }

  append(chunk: Buffer): void {
    if (this.#head.length < HEADER_BYTES) this.#readHead(chunk)
    const ahead = this.#tail.length === 0 ? chunk : Buffer.concat([this.#tail, chunk])
    const summed = Math.max(0, ahead.length - TRAILER_BYTES)
    this.#hash.update(ahead.subarray(0, summed))
    this.#tail = Buffer.from(ahead.subarray(summed))
    try {
      for (let at = 0; at < chunk.length; ) at += writeSync(this.#fd, chunk, at)
    } catch (cause) {
      throw failed('the git repository cannot be kept on disk while it is read', cause)
    }
    this.#size += chunk.length
  }

  /** After the last `append`, once. */
  finish(): void {
    if (this.#size < HEADER_BYTES + TRAILER_BYTES) throw failed('the git server sent no complete pack')
    if (!this.#hash.digest().equals(this.#tail)) throw failed('the pack of the git server does not have the checksum it should have')
  }

  /** As much as there is of it. */
  read(position: number, length: number): Buffer {
    const data = Buffer.allocUnsafe(Math.max(0, Math.min(length, this.#size - position)))
    let filled = 0
    while (filled < data.length) {
      const count = readSync(this.#fd, data, filled, data.length - filled, position + filled)
      if (count === 0) throw failed('the temporary file of the git repository is shorter than what was written')
      filled += count
    }
    return data
  }

  [Symbol.dispose](): void {
    if (this.#closed) return
    this.#closed = true
    closeSync(this.#fd)
    if (this.#path !== undefined) unlinkSync(this.#path)
  }

  #readHead(chunk: Buffer): void {
    this.#head = Buffer.concat([this.#head, chunk.subarray(0, HEADER_BYTES - this.#head.length)])
    if (this.#head.length < HEADER_BYTES) return
    const version = this.#head.readUInt32BE(4)
    if (this.#head.toString('latin1', 0, 4) !== 'PACK' || (version !== 2 && version !== 3))
      throw failed('the git server sent something else than a pack')
    if (this.objectCount > this.#maxObjects)
      throw overLimit(`the git repository has ${this.objectCount} objects at this commit, more than the ${this.#maxObjects} allowed`)
  }
}
