import type { Readable } from 'node:stream'
import type { StreamName } from './log-line.ts'

export interface OutputChunk {
  readonly stream: StreamName
  readonly bytes: Uint8Array
}

/** Gets everything as it comes. While one is full the container waits. */
export interface OutputSink {
  readonly isFull: boolean
  write(stream: StreamName, bytes: Uint8Array): void
}

/** Bytes that wait for one reader before the container must wait for it. */
const READER_FULL = 256 << 10

/**
 * Output of one run of a container, passed on at once to its log and to all attached clients. Nothing is lost: the slowest sets
 * the pace.
 */
export class ContainerOutput {
  /** Never rejects. All was passed on, though slow readers may still hold some of it. */
  readonly ended: Promise<void>
  readonly #streams: readonly Readable[]
  readonly #sink: OutputSink
  readonly #readers = new Set<OutputReader>()
  #paused = false
  #over = false

  constructor(streams: Readonly<Record<StreamName, Readable>>, sink: OutputSink) {
    this.#streams = [streams.stdout, streams.stderr]
    this.#sink = sink
    this.ended = Promise.all([this.#listen('stdout', streams.stdout), this.#listen('stderr', streams.stderr)]).then(() => {
      this.#over = true
      for (const reader of this.#readers) reader.end()
    })
  }

  /** The sink has room again, or a reader has read or left. */
  flow(): void {
    if (!this.#paused || this.#isFull()) return
    this.#paused = false
    for (const stream of this.#streams) stream.resume()
  }

  attach(wanted: readonly StreamName[]): OutputReader {
    const reader = new OutputReader(wanted, {
      onRead: () => this.flow(),
      onLeave: () => {
        this.#readers.delete(reader)
        this.flow()
      },
    })
    if (this.#over) reader.end()
    else this.#readers.add(reader)
    return reader
  }

  /** Gives up what was not read yet: another process may hold the other end without end. */
  destroy(): void {
    for (const stream of this.#streams) stream.destroy()
  }

  #listen(name: StreamName, stream: Readable): Promise<void> {
    stream.on('data', (bytes: Uint8Array) => this.#pass(name, bytes))
    return new Promise((resolve) => stream.once('close', () => resolve()))
  }

  #pass(stream: StreamName, bytes: Uint8Array): void {
    for (const reader of this.#readers) reader.push({ stream, bytes })
    this.#sink.write(stream, bytes)
    if (this.#paused || !this.#isFull()) return
    this.#paused = true
    for (const one of this.#streams) one.pause()
  }

  #isFull(): boolean {
    if (this.#sink.isFull) return true
    for (const reader of this.#readers) if (reader.isFull) return true
    return false
  }
}

/** One client's share of the output, in order. For one loop only. */
class OutputReader implements AsyncIterable<OutputChunk> {
  readonly #wanted: readonly StreamName[]
  readonly #hooks: { onRead(): void; onLeave(): void }
  readonly #chunks: OutputChunk[] = []
  #bytes = 0
  #over = false
  #wake: (() => void) | undefined

  constructor(wanted: readonly StreamName[], hooks: { onRead(): void; onLeave(): void }) {
    this.#wanted = wanted
    this.#hooks = hooks
  }

  get isFull(): boolean {
    return this.#bytes > READER_FULL
  }

  push(chunk: OutputChunk): void {
    if (this.#over || !this.#wanted.includes(chunk.stream)) return
    this.#chunks.push(chunk)
    this.#bytes += chunk.bytes.length
    this.#wake?.()
  }

  /** Held output can still be read. */
  end(): void {
    this.#over = true
    this.#wake?.()
  }

  /** Held output is dropped. */
  leave(): void {
    this.end()
    this.#chunks.length = 0
    this.#bytes = 0
    this.#hooks.onLeave()
  }

  async *[Symbol.asyncIterator](): AsyncGenerator<OutputChunk, void, undefined> {
    try {
      for (;;) {
        const chunk = this.#chunks.shift()
        if (chunk !== undefined) {
          this.#bytes -= chunk.bytes.length
          this.#hooks.onRead()
          yield chunk
        } else if (this.#over) {
          return
        } else {
          await new Promise<void>((resolve) => {
            this.#wake = resolve
          })
        }
      }
    } finally {
      this.leave()
    }
  }
}
