import type { Arena } from './arena.ts'

/** Serialised entries ready to be sent: the slices, in order, are the inside of a JSON array. */
export interface Page {
  /** Views of the snapshot's memory: never write into them. */
  readonly slices: readonly Uint8Array[]
  readonly bytes: number
  readonly count: number
  readonly nextCursor?: string
}

/** A whole list answer is PAGE_HEAD, the slices, `pageTail`. */
export const PAGE_HEAD = '{"servers":['

export function pageTail(page: Page): string {
  return `],"metadata":${JSON.stringify({ count: page.count, nextCursor: page.nextCursor })}}\n`
}

/** Neighbours in the arena become one slice; each slice but the last takes the comma behind it along. */
export function pageOf(arena: Arena, positions: ArrayLike<number>, nextCursor?: string): Page {
  const slices: Uint8Array[] = []
  let bytes = 0
  for (let i = 0; i < positions.length; ) {
    const first = positions[i] ?? 0
    let last = first
    i++
    while (i < positions.length && positions[i] === last + 1 && isNext(arena, last)) {
      last++
      i++
    }
    const slice = sliceOf(arena, { first, last, comma: i < positions.length })
    slices.push(slice)
    bytes += slice.length
  }
  return { slices, bytes, count: positions.length, ...(nextCursor !== undefined && { nextCursor }) }
}

/** Whether the item behind `p` stands right behind its end byte. */
function isNext(arena: Arena, p: number): boolean {
  return arena.segmentOf[p + 1] === arena.segmentOf[p] && arena.offset[p + 1] === (arena.offset[p] ?? 0) + (arena.length[p] ?? 0) + 1
}

export function sliceOf(arena: Arena, range: { first: number; last: number; comma: boolean }): Uint8Array {
  const segment = arena.segments[arena.segmentOf[range.first] ?? 0] ?? new Uint8Array()
  const end = (arena.offset[range.last] ?? 0) + (arena.length[range.last] ?? 0) + (range.comma ? 1 : 0)
  return segment.subarray(arena.offset[range.first], end)
}
