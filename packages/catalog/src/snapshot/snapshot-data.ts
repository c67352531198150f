import type { Arena } from './arena.ts'
import type { StringTable } from './string-table.ts'

/**
 * Everything one registry serves, as plain data on buffers: a worker builds it and hands it over without a copy.
 * Position `p` is an entry's place in the order of lists: name by code point, then version ascending.
 */
export interface SnapshotData {
  readonly count: number
  /** Sorted by code point. */
  readonly names: StringTable
  /** Name `n` has the positions `nameStart[n] .. nameStart[n + 1]`. */
  readonly nameStart: Uint32Array
  /** Sorted by code point. */
  readonly versions: StringTable
  readonly versionOf: Uint32Array
  readonly flags: Uint8Array
  readonly updatedMs: Float64Array
  readonly updatedNs: Uint32Array
  /** The positions of each name, newest publication first, then version descending. */
  readonly byPublication: Uint32Array
  /** JSON of each entry as clients receive it; a comma follows each, so that neighbours are one slice. */
  readonly json: Arena
  /** Name, title and description of each entry in folded case, FIELD_END between them and after them. */
  readonly text: Arena
}

export const DELETED = 1
export const LATEST = 2

/** No UTF-8 text contains this byte, so nothing that is searched for can reach across two fields. */
export const FIELD_END = 0xff

/** Folding of both the text and the words searched for. */
export function foldCase(text: string): string {
  return text.toWellFormed().toLowerCase()
}

/** The buffers to name in `postMessage(data, transferList)`; the sender's copy is empty afterwards. Shared ones go along by themselves. */
export function snapshotTransferList(data: SnapshotData): ArrayBuffer[] {
  const arenas = [data.json, data.text].flatMap((arena) => [...arena.segments, arena.segmentOf, arena.offset, arena.length])
  const tables = [data.names, data.versions].flatMap((table) => [table.bytes, table.offsets])
  const columns = [data.nameStart, data.versionOf, data.flags, data.updatedMs, data.updatedNs, data.byPublication]
  return [...new Set([...arenas, ...tables, ...columns].map((view) => view.buffer).filter((buffer) => buffer instanceof ArrayBuffer))]
}
