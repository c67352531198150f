/**
 * Byte strings in segments of about 1 MB, so that a client that reads slowly pins one segment and not the whole. They may stand in any
 * order; neighbours that follow each other in memory are sent as one. Plain data: it can be handed from a worker without a copy, and
 * segments that both threads keep are in shared memory.
 */
export interface Arena {
  readonly segments: readonly Uint8Array[]
  readonly segmentOf: Uint32Array
  readonly offset: Uint32Array
  /** Without the end byte that follows the item. */
  readonly length: Uint32Array
}

export interface ArenaWriter {
  /** Items come in order 0, 1, 2 …, each with at least one part; the end byte follows each part. Returns how many bytes it took. */
  append(...parts: readonly string[]): number
  /** An item that stands in other memory, with its end byte behind it. Those that follow each other there are copied at once. */
  appendFrom(source: Uint8Array, offset: number, length: number): void
  /** After `count` items. */
  finish(): Arena
}

export interface ArenaWriterOptions {
  readonly count: number
  /** Written after each part of an item. */
  readonly end: number
  readonly segmentBytes?: number | undefined
}

export const SEGMENT_BYTES = 1 << 20

export function createArenaWriter(options: ArenaWriterOptions): ArenaWriter {
  const { count, end, segmentBytes = SEGMENT_BYTES } = options
  const segments: Uint8Array<ArrayBuffer>[] = []
  const segmentOf = new Uint32Array(count)
  const offset = new Uint32Array(count)
  const length = new Uint32Array(count)
  let current = Buffer.alloc(0)
  let used = 0
  let item = 0
  /** Not copied yet. */
  let run: { readonly source: Uint8Array; readonly start: number; readonly at: number; end: number } | undefined

  function copyRun(): void {
    if (run) current.set(run.source.subarray(run.start, run.end), run.at)
    run = undefined
  }

  function open(bytes: number): void {
    close()
    const segment = new Uint8Array(bytes)
    segments.push(segment)
    current = Buffer.from(segment.buffer)
    used = 0
  }

  function close(): void {
    copyRun()
    const last = segments.at(-1)
    if (last && used < last.length) segments[segments.length - 1] = last.slice(0, used)
  }

  /** `bytes` with the last end byte. */
  function place(bytes: number): void {
    if (item === count) throw new RangeError(`an arena for ${count} items gets another one`)
    if (used + bytes > current.length) open(Math.max(segmentBytes, bytes))
    segmentOf[item] = segments.length - 1
    offset[item] = used
    length[item] = bytes - 1
    item++
  }

  return {
    append(...parts) {
      if (parts.length === 0) throw new RangeError('an item of an arena has at least one part')
      let bytes = parts.length
      for (const part of parts) bytes += Buffer.byteLength(part)
      place(bytes)
      copyRun() // what follows in the source does not follow it here any more
      for (const part of parts) {
        used += current.write(part, used, 'utf8')
        current[used++] = end
      }
      return bytes
    },
    appendFrom(source, from, bytes) {
      place(bytes + 1)
      if (run?.source !== source || run.end !== from) {
        copyRun()
        run = { source, start: from, at: used, end: from }
      }
      run.end += bytes + 1
      used += bytes + 1
    },
    finish() {
      if (item < count) throw new RangeError(`an arena for ${count} items has only ${item}`)
      close()
      return { segments, segmentOf, offset, length }
    },
  }
}
