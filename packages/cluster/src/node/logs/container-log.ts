import { type FileHandle, open, rm } from 'node:fs/promises'
import type { Clock } from '@thv/kernel/clock'
import { partPath, prepareLogFolder } from './log-folder.ts'
import { formatPiece, LineCutter, type StreamName } from './log-line.ts'

export interface LogLimits {
  /** A new part begins after so many bytes. */
  readonly partBytes: number
  readonly parts: number
}

const LOG_LIMITS: LogLimits = { partBytes: 10 << 20, parts: 3 }

export interface ContainerLogOptions {
  readonly folder: string
  readonly run: number
  readonly clock: Clock
  readonly limits?: LogLimits
  /** Told when the disk begins not to take it. Lines are lost until it does again; the container goes on. */
  readonly onError: (error: unknown) => void
}

/** With more than this waiting for the disk, writers should wait. */
const FULL_BYTES = 1 << 20

/** The log of one run of a container: lines in files that are cut off at the old end. */
export class ContainerLog {
  readonly run: number
  readonly #options: ContainerLogOptions
  readonly #limits: LogLimits
  readonly #cutters: Readonly<Record<StreamName, LineCutter>>
  readonly #listeners = new Set<() => void>()
  #pending: Buffer[] = []
  #pendingBytes = 0
  #file: FileHandle | undefined
  #part = 0
  #partBytes = 0
  #writing: Promise<void> | undefined
  #ended = false
  #closed: Promise<void> | undefined
  #failed = false

  private constructor(options: ContainerLogOptions) {
    this.#options = options
    this.run = options.run
    this.#limits = options.limits ?? LOG_LIMITS
    const cutter = (stream: StreamName) =>
      new LineCutter((text, isWhole) => this.#add(formatPiece(stream, options.clock.now(), text, isWhole)))
    this.#cutters = { stdout: cutter('stdout'), stderr: cutter('stderr') }
  }

  static async open(options: ContainerLogOptions): Promise<ContainerLog> {
    const log = new ContainerLog(options)
    await prepareLogFolder(options.folder, options.run)
    log.#file = await open(partPath(options.folder, options.run, 0), 'w', 0o600)
    return log
  }

  /** No more will come, and all is in the files. */
  get isComplete(): boolean {
    return this.#ended && this.#writing === undefined
  }

  get isFull(): boolean {
    return this.#pendingBytes > FULL_BYTES
  }

  write(stream: StreamName, bytes: Uint8Array): void {
    this.#cutters[stream].push(bytes)
  }

  /** Called after each write to the files and at the end. Returns how to leave. */
  onChange(listener: () => void): () => void {
    this.#listeners.add(listener)
    return () => this.#listeners.delete(listener)
  }

  /** Resolves when all is written. Idempotent. */
  close(): Promise<void> {
    this.#closed ??= this.#close()
    return this.#closed
  }

  async #close(): Promise<void> {
    for (const cutter of Object.values(this.#cutters)) cutter.end()
    this.#ended = true
    while (this.#writing) await this.#writing
    await this.#file?.close().catch(this.#options.onError)
    this.#file = undefined
    this.#tell()
  }

  #add(line: Buffer): void {
    if (this.#ended) return
    this.#pending.push(line)
    this.#pendingBytes += line.length
    this.#startWriting()
  }

  #startWriting(): void {
    this.#writing ??= this.#flush().finally(() => {
      this.#writing = undefined
      if (this.#pending.length > 0)
        this.#startWriting() // it came when the work was just over
      else this.#tell()
    })
  }

  async #flush(): Promise<void> {
    try {
      while (this.#pending.length > 0) {
        const lines = this.#pending
        this.#pending = []
        await this.#write(lines)
        this.#tell()
      }
    } catch (error) {
      const isNews = !this.#failed
      this.#failed = true
      this.#pending = []
      this.#pendingBytes = 0
      if (isNews) this.#options.onError(error)
    }
  }

  async #write(lines: readonly Buffer[]): Promise<void> {
    let batch: Buffer[] = []
    const send = async () => {
      const bytes = Buffer.concat(batch)
      batch = []
      if (bytes.length === 0) return
      // Ends what may have been written of a line when the disk was full.
      if (this.#failed) await this.#file?.appendFile('\n')
      await this.#file?.appendFile(bytes)
      this.#failed = false
      this.#pendingBytes -= bytes.length
    }
    for (const line of lines) {
      if (this.#partBytes > 0 && this.#partBytes + line.length > this.#limits.partBytes) {
        await send()
        await this.#nextPart()
      }
      batch.push(line)
      this.#partBytes += line.length
    }
    await send()
  }

  async #nextPart(): Promise<void> {
    const { folder, run } = this.#options
    const old = this.#file
    this.#part++
    this.#partBytes = 0
    this.#file = await open(partPath(folder, run, this.#part), 'w', 0o600)
    await old?.close()
    await rm(partPath(folder, run, this.#part - this.#limits.parts), { force: true })
  }

  #tell(): void {
    for (const listener of [...this.#listeners]) listener()
  }
}
