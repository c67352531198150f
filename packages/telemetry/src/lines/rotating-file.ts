import { closeSync, fstatSync, openSync, write } from 'node:fs'
import { type FileHandle, open, rename, rm, stat } from 'node:fs/promises'
import { type Clock, systemClock } from '@thv/kernel/clock'
import { BATCH_BYTES, type LineOutput, type WriteCallback } from './line-output.ts'

export interface RotatingFileOptions {
  readonly path: string
  /** The file is renamed before it gets larger. */
  readonly maxBytes: number
  /** The current one included: PATH, PATH.1 (the newest) and so on. */
  readonly maxFiles: number
  readonly clock?: Clock
}

/** How often it is checked that the path still names the open file: somebody may have removed or renamed it. */
const CHECK_MS = 1_000
const MODE = 0o600

/** A file that lines are appended to; readable by its owner only. Throws when it cannot be opened. */
export class RotatingFile implements LineOutput {
  readonly maxBatchBytes: number
  readonly #options: RotatingFileOptions
  readonly #clock: Clock
  #file: { readonly handle: FileHandle; readonly inode: number } | undefined
  #size = 0
  #checkedAt: number
  #done: WriteCallback | undefined

  constructor(options: RotatingFileOptions) {
    this.#options = options
    this.maxBatchBytes = Math.min(BATCH_BYTES, options.maxBytes)
    this.#clock = options.clock ?? systemClock
    this.#checkedAt = Number.NEGATIVE_INFINITY
    const fd = openSync(options.path, 'a', MODE) // a path that cannot work stops the start, not the first event
    try {
      if (!fstatSync(fd).isFile()) throw new TypeError(`${options.path} is not a file`)
    } finally {
      closeSync(fd)
    }
  }

  begin(bytes: number): Promise<void> | undefined {
    const isDue = this.#clock.monotonic() - this.#checkedAt >= CHECK_MS
    if (this.#file !== undefined && !isDue && this.#size + bytes <= this.#options.maxBytes) return undefined
    return this.#prepare(bytes)
  }

  write(bytes: Buffer, offset: number, done: WriteCallback): void {
    const file = this.#file
    if (file === undefined) {
      done(new Error('the file is not open'), 0)
      return
    }
    this.#done = done
    write(file.handle.fd, bytes, offset, bytes.length - offset, null, this.#onWritten)
  }

  readonly #onWritten: WriteCallback = (error, written) => {
    if (error === null) this.#size += written
    this.#done?.(error, written)
  }

  reset(): void {
    const file = this.#file
    this.#file = undefined
    void file?.handle.close().catch(() => undefined) // it failed before, which was reported
  }

  async close(): Promise<void> {
    await this.#file?.handle.close()
    this.#file = undefined
  }

  async #prepare(bytes: number): Promise<void> {
    const { path, maxBytes } = this.#options
    const named = await stat(path).catch(() => undefined)
    if (this.#file !== undefined && named?.ino !== this.#file.inode) await this.close()
    if (this.#file === undefined) await this.#open()
    if (this.#size > 0 && this.#size + bytes > maxBytes) {
      await this.close()
      await this.#rotate()
      await this.#open()
    }
    this.#checkedAt = this.#clock.monotonic()
  }

  async #open(): Promise<void> {
    const handle = await open(this.#options.path, 'a', MODE)
    const { ino, size } = await handle.stat()
    this.#file = { handle, inode: ino }
    this.#size = size
  }

  async #rotate(): Promise<void> {
    const { path, maxFiles } = this.#options
    if (maxFiles <= 1) return await rm(path, { force: true })
    for (let at = maxFiles - 1; at >= 1; at--) {
      await rename(at === 1 ? path : `${path}.${at - 1}`, `${path}.${at}`).catch((error: NodeJS.ErrnoException) => {
        if (error.code !== 'ENOENT') throw error
      })
    }
  }
}
