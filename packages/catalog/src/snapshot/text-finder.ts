import type { Arena } from './arena.ts'

export interface TextFinder {
  /** The first item from `from` on that contains the bytes; -1 when none does. */
  next(needle: Buffer, from: number): number
}

/** Looks through whole segments at once: far quicker than item by item when few match. The items must stand in the order of memory. */
export function createTextFinder(arena: Arena): TextFinder {
  const segments = arena.segments.map((segment) => Buffer.from(segment.buffer, segment.byteOffset, segment.byteLength))
  const firstItem = firstItems(arena)
  const count = arena.offset.length

  function itemAt(segment: number, byte: number): number {
    let low = firstItem[segment] ?? 0
    let high = firstItem[segment + 1] ?? count
    while (low + 1 < high) {
      const middle = (low + high) >>> 1
      if ((arena.offset[middle] ?? 0) <= byte) low = middle
      else high = middle
    }
    return low
  }

  return {
    next(needle, from) {
      if (from >= count) return -1
      let segment = arena.segmentOf[from] ?? 0
      let start = arena.offset[from] ?? 0
      for (; segment < segments.length; segment++) {
        const byte = segments[segment]?.indexOf(needle, start) ?? -1
        if (byte !== -1) return itemAt(segment, byte)
        start = 0
      }
      return -1
    },
  }
}

/** Items stand in order, so a few looks find where a segment begins: this runs in the thread that serves, for each new snapshot. */
function firstItems({ segments, segmentOf }: Arena): Uint32Array {
  return Uint32Array.from(segments, (_, segment) => {
    let low = 0
    let high = segmentOf.length
    while (low < high) {
      const middle = (low + high) >>> 1
      if ((segmentOf[middle] ?? 0) < segment) low = middle + 1
      else high = middle
    }
    return low
  })
}
