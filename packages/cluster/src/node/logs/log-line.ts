export type StreamName = 'stdout' | 'stderr'

/** One line of a log file, as container runtimes write it: `TIME STREAM F|P TEXT`; P is a piece of a line that goes on. */
export interface LogLine {
  /** RFC 3339 with nanoseconds. */
  readonly time: string
  readonly stream: StreamName
  readonly isWhole: boolean
  readonly text: Buffer
}

/** Longer lines are written in pieces, so that a program that never ends its line cannot fill the memory. */
export const MAX_PIECE = 16_384

const NEWLINE = 0x0a
const SPACE = 0x20

export function formatPiece(stream: StreamName, timeMs: number, text: Uint8Array, isWhole: boolean): Buffer {
  return Buffer.concat([Buffer.from(`${nanoTime(timeMs)} ${stream} ${isWhole ? 'F' : 'P'} `), text, Buffer.of(NEWLINE)])
}

/** Undefined for a line that was cut by a crash. `line` comes without its end. */
export function parseLine(line: Buffer): LogLine | undefined {
  const first = line.indexOf(SPACE)
  const second = line.indexOf(SPACE, first + 1)
  if (first < 20 || second < 0 || line[second + 2] !== SPACE) return undefined
  const stream = line.toString('latin1', first + 1, second)
  if (stream !== 'stdout' && stream !== 'stderr') return undefined
  const tag = line.toString('latin1', second + 1, second + 2)
  return { time: line.toString('latin1', 0, first), stream, isWhole: tag === 'F', text: line.subarray(second + 3) }
}

function nanoTime(timeMs: number): string {
  return new Date(timeMs).toISOString().replace('Z', '000000Z')
}

/** Cuts a stream of bytes into lines and pieces of lines. */
export class LineCutter {
  readonly #emit: (text: Uint8Array, isWhole: boolean) => void
  #held: Uint8Array[] = []
  #size = 0

  constructor(emit: (text: Uint8Array, isWhole: boolean) => void) {
    this.#emit = emit
  }

  push(bytes: Uint8Array): void {
    let from = 0
    while (from < bytes.length) {
      const newline = bytes.indexOf(NEWLINE, from)
      const end = newline < 0 ? bytes.length : newline
      from = this.#take(bytes, from, end)
      if (from === newline) {
        this.#flush(true)
        from++
      }
    }
  }

  /** Text without an end of line yet. */
  end(): void {
    if (this.#size > 0) this.#flush(true)
  }

  /** Holds up to the limit of a piece; returns how far it came. */
  #take(bytes: Uint8Array, from: number, end: number): number {
    const take = Math.min(end - from, MAX_PIECE - this.#size)
    // A copy: the buffers of a socket are large, and one byte would keep all of it.
    if (take > 0) this.#held.push(Uint8Array.from(bytes.subarray(from, from + take)))
    this.#size += take
    if (this.#size === MAX_PIECE && from + take < end) this.#flush(false)
    return from + take
  }

  #flush(isWhole: boolean): void {
    const text = this.#held.length === 1 ? (this.#held[0] ?? new Uint8Array()) : Buffer.concat(this.#held)
    this.#held = []
    this.#size = 0
    this.#emit(text, isWhole)
  }
}
