/**
 * Byte strings one after the other in segments of about 1 MB, so that a client that reads slowly pins one segment and not the whole.
 * Plain data: it can be handed from a worker without a copy.
 */
export interface Arena {
  readonly segments: readonly Uint8Array<ArrayBuffer>[]
  readonly segmentOf: Uint32Array<ArrayBuffer>
  readonly offset: Uint32Array<ArrayBuffer>
  /** Without the end byte that follows the item. */
  readonly length: Uint32Array<ArrayBuffer>
}

export interface ArenaWriter {
  /** Items come in order 0, 1, 2 …; the end byte follows each part. Returns how many bytes it took. */
  append(...parts: readonly string[]): number
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

  function open(bytes: number): void {
    close()
    const segment = new Uint8Array(bytes)
    segments.push(segment)
    current = Buffer.from(segment.buffer)
    used = 0
  }

  function close(): void {
    const last = segments.at(-1)
    if (last && used < last.length) segments[segments.length - 1] = last.slice(0, used)
  }

  return {
    append(...parts) {
      let bytes = parts.length
      for (const part of parts) bytes += Buffer.byteLength(part)
      if (used + bytes > current.length) open(Math.max(segmentBytes, bytes))
      segmentOf[item] = segments.length - 1
      offset[item] = used
      length[item] = bytes - 1
      item++
      for (const part of parts) {
        used += current.write(part, used, 'utf8')
        current[used++] = end
      }
      return bytes
    },
    finish() {
      close()
      return { segments, segmentOf, offset, length }
    },
  }
}
