import { StringDecoder } from 'node:string_decoder'
import { stripVTControlCharacters } from 'node:util'
import { type Clock, systemClock } from '@thv/kernel/clock'

export interface LineLogOptions {
  /** Gets each line, without its end and without control characters. */
  readonly write: (line: string) => void
  readonly maxLineLength?: number
  /** Lines per second in the long run, and at once. */
  readonly linesPerSecond?: number
  readonly burst?: number
  readonly clock?: Clock
}

export interface LineLog {
  push(chunk: Uint8Array): void
  end(): void
  /** Lines that were too many. */
  readonly dropped: number
}

/**
 * Output of a program as lines for our log. The program may print without end, so both the length and the number of lines are
 * limited; what is left out is said.
 */
export function createLineLog(options: LineLogOptions): LineLog {
  const { write, maxLineLength = 4_096, linesPerSecond = 50, burst = 200, clock = systemClock } = options
  const decoder = new StringDecoder('utf8')
  let partial = ''
  let isCut = false
  let tokens = burst
  let refilledAt = clock.monotonic()
  let dropped = 0
  let unreported = 0

  function mayWrite(): boolean {
    const now = clock.monotonic()
    tokens = Math.min(burst, tokens + ((now - refilledAt) / 1_000) * linesPerSecond)
    refilledAt = now
    if (tokens < 1) return false
    tokens--
    return true
  }

  function line(text: string, cut: boolean): void {
    const clean = printable(text)
    if (clean === '') return
    if (!mayWrite()) {
      dropped++
      unreported++
      return
    }
    if (unreported > 0) {
      write(`(${unreported} lines were left out: too many)`)
      unreported = 0
    }
    write(cut ? `${clean}…` : clean)
  }

  function take(text: string): void {
    const room = maxLineLength - partial.length
    if (text.length > room) isCut = true
    partial += text.slice(0, Math.max(0, room))
  }

  function finish(): void {
    line(partial, isCut)
    partial = ''
    isCut = false
  }

  return {
    push(chunk) {
      const pieces = decoder.write(Buffer.from(chunk.buffer, chunk.byteOffset, chunk.byteLength)).split('\n')
      for (const [index, piece] of pieces.entries()) {
        if (index > 0) finish()
        take(piece)
      }
    },
    end() {
      take(decoder.end())
      finish()
      if (unreported > 0) write(`(${unreported} lines were left out: too many)`)
      unreported = 0
    },
    get dropped() {
      return dropped
    },
  }
}

/** Colours and cursor movements of a terminal have no place in a log, and could fake lines of it. */
function printable(text: string): string {
  return stripVTControlCharacters(text)
    .replace(/[\p{Cc}\u2028\u2029]+/gu, ' ')
    .trimEnd()
}
