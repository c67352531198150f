import type { Writable } from 'node:stream'
import { writeLine } from '@thv/mcp/write-line'

/** The way to a server: what comes in one turn of the event loop goes out in one system call, the costliest part of a call over a pipe. */
export class PipeWriter {
  readonly #stdin: Writable
  readonly #signal: AbortSignal
  #isCorked = false

  constructor(stdin: Writable, signal: AbortSignal) {
    this.#stdin = stdin
    this.#signal = signal
  }

  /** Resolves when the line is in the pipe, after a wait if that is full. Rejects when there is no pipe any more. */
  write(line: string): Promise<void> {
    if (!this.#isCorked) {
      this.#isCorked = true
      this.#stdin.cork()
      setImmediate(() => {
        this.#isCorked = false
        this.#stdin.uncork()
      })
    }
    return writeLine(this.#stdin, withoutOddLineEnds(line), this.#signal)
  }
}

/** Some servers take these for line ends, as Node's own readline does. In JSON they can only stand in a string, where an escape is the same. */
function withoutOddLineEnds(line: string): string {
  return line.includes('\u2028') || line.includes('\u2029') ? line.replaceAll('\u2028', '\\u2028').replaceAll('\u2029', '\\u2029') : line
}
