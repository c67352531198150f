/** Where a byte string stands: its end byte follows it. */
export interface Span {
  readonly segment: Segment
  readonly offset: number
  readonly length: number
}

export interface Segment {
  readonly bytes: Uint8Array<SharedArrayBuffer>
}

/**
 * Byte strings in shared memory, written once and never changed, so that this thread and the serving one keep the same bytes. What is
 * released stays until its segment is no longer held: the writer moves the rest elsewhere when too much is lost (`waste`).
 */
export interface SharedArena {
  append(parts: readonly (string | Uint8Array)[]): Span
  release(span: Span): void
  /** Bytes in use, and bytes held only because their segment is. */
  readonly live: number
  readonly waste: number
  /** Byte strings that were ever appended. */
  readonly writes: number
}

export interface SharedArenaOptions {
  /** Follows each byte string. */
  readonly end: number
  readonly segmentBytes?: number
}

const SEGMENT_BYTES = 1 << 20
const FIRST_SEGMENT_BYTES = 1 << 15

export function createSharedArena(options: SharedArenaOptions): SharedArena {
  const { end, segmentBytes = SEGMENT_BYTES } = options
  let current: Segment = { bytes: new Uint8Array(new SharedArrayBuffer(0)) }
  let target = Buffer.from(current.bytes.buffer)
  let used = 0
  let live = 0
  let waste = 0
  let writes = 0

  function open(bytes: number): void {
    waste += target.length - used
    // Small catalogs stay small.
    const size = Math.min(segmentBytes, Math.max(target.length * 2, FIRST_SEGMENT_BYTES))
    current = { bytes: new Uint8Array(new SharedArrayBuffer(Math.max(size, bytes))) }
    target = Buffer.from(current.bytes.buffer)
    used = 0
  }

  return {
    append(parts) {
      let length = 0
      for (const part of parts) length += typeof part === 'string' ? Buffer.byteLength(part) : part.length
      if (used + length + 1 > target.length) open(length + 1)
      const span = { segment: current, offset: used, length }
      for (const part of parts) {
        if (typeof part === 'string') used += target.write(part, used, 'utf8')
        else {
          target.set(part, used)
          used += part.length
        }
      }
      target[used++] = end
      live += length + 1
      writes++
      return span
    },
    release(span) {
      live -= span.length + 1
      waste += span.length + 1
    },
    get live() {
      return live
    },
    get waste() {
      return waste
    },
    get writes() {
      return writes
    },
  }
}

export function bytesOf(span: Span): Buffer {
  return Buffer.from(span.segment.bytes.buffer, span.offset, span.length)
}
