import type { Arena } from '@thv/catalog/snapshot/arena'
import { DELETED, type SnapshotData } from '@thv/catalog/snapshot/snapshot-data'
import type { StringTable } from '@thv/catalog/snapshot/string-table'
import type { Claims } from '@thv/catalog/sources/fetch/source-config'
import { compareCodePoints } from '@thv/catalog/text'
import type { Row } from './catalog-row.ts'
import type { Shown } from './shadowing.ts'
import { bytesOf, type Segment, type Span } from './shared-arena.ts'

export interface LatestRow {
  readonly name: string
  readonly row: Row
}

export interface BuiltView {
  readonly snapshot: SnapshotData
  /** Each server by its latest version, for search. */
  readonly latest: readonly LatestRow[]
  /** The different claims of what the sources have, `visible` or not, in the order of their keys. */
  readonly claimSets: readonly (readonly [key: string, claims: Claims | undefined])[]
}

/** Places of everything that was laid out. */
export interface Layout {
  readonly names: readonly string[]
  readonly starts: readonly number[]
  readonly rows: readonly Row[]
  readonly segments: readonly Segment[]
  /** Of each position, in `latest`; -1: it is not there. */
  readonly latestAt: Int32Array
}

export interface Change {
  readonly position: number
  readonly shown: Shown
}

export interface ChangedEntry {
  readonly updatedMs: number
  readonly updatedNs: number
  readonly json: Span
}

/**
 * A view as it was built last. Where only documents and their times change, and the rest stands where it stood, the next one is made from
 * it. What cannot change then is in shared memory: both threads have it once.
 */
export class KeptView {
  readonly #layout: Layout
  readonly #rows: Row[]
  readonly #segments: Segment[]
  readonly #segmentAt: Map<Segment, number>
  readonly #view: BuiltView
  #latest: readonly LatestRow[]

  constructor(layout: Layout, view: BuiltView) {
    const { names, nameStart, versions, versionOf, byPublication, text, ...rest } = view.snapshot
    this.#layout = layout
    this.#rows = [...layout.rows]
    this.#segments = [...layout.segments]
    this.#segmentAt = new Map(layout.segments.map((segment, at) => [segment, at]))
    this.#latest = view.latest
    this.#view = {
      ...view,
      snapshot: {
        ...{ names: sharedTable(names), versions: sharedTable(versions), text: sharedArena(text) },
        ...{ nameStart: shared(nameStart), versionOf: shared(versionOf), byPublication: shared(byPublication) },
        ...rest,
      },
    }
  }

  /** For others: they may give its columns away. */
  get view(): BuiltView {
    const { snapshot } = this.#view
    const { segmentOf, offset, length } = snapshot.json
    return {
      ...this.#view,
      latest: this.#latest,
      snapshot: {
        ...snapshot,
        flags: snapshot.flags.slice(),
        updatedMs: snapshot.updatedMs.slice(),
        updatedNs: snapshot.updatedNs.slice(),
        json: {
          segments: this.#segments.map(({ bytes }) => bytes),
          ...{ segmentOf: segmentOf.slice(), offset: offset.slice(), length: length.slice() },
        },
      },
    }
  }

  rowAt(position: number): Row | undefined {
    return this.#rows[position]
  }

  /** Positions of the versions that are shown of a name now. Undefined: more than documents and times is another. */
  changesOf(name: string, shown: readonly Shown[]): readonly Change[] | undefined {
    const at = this.#placeOf(name)
    const isThere = this.#layout.names[at] === name
    if (shown.length === 0) return isThere ? undefined : []
    const start = this.#layout.starts[at] ?? 0
    const end = this.#layout.starts[at + 1] ?? 0
    if (!isThere || end - start !== shown.length) return undefined
    const changes = shown.map((each, i) => ({ position: start + i, shown: each }))
    return changes.every((change) => this.#standsThere(change)) ? changes : undefined
  }

  put({ position, shown }: Change, { updatedMs, updatedNs, json }: ChangedEntry): void {
    const { snapshot } = this.#view
    this.#rows[position] = shown.row
    snapshot.updatedMs[position] = updatedMs
    snapshot.updatedNs[position] = updatedNs
    snapshot.json.segmentOf[position] = this.#numberOf(json.segment)
    snapshot.json.offset[position] = json.offset
    snapshot.json.length[position] = json.length
  }

  /** After all changes: the rows of search. */
  settle(changes: readonly Change[]): void {
    const latest = [...this.#latest]
    for (const { position, shown } of changes) {
      const at = this.#layout.latestAt[position] ?? -1
      const before = latest[at]
      if (before !== undefined) latest[at] = { name: before.name, row: shown.row }
    }
    this.#latest = latest
  }

  #standsThere({ position, shown: { row, gone } }: Change): boolean {
    const before = this.#rows[position]
    if (before === undefined) return false
    const isDeleted = gone || row.deleted
    return (
      row.version === before.version &&
      row.publishedMs === before.publishedMs &&
      row.publishedNs === before.publishedNs &&
      isDeleted === (((this.#view.snapshot.flags[position] ?? 0) & DELETED) !== 0) &&
      (!isDeleted && row.isLatest) === (this.#layout.latestAt[position] ?? -1) >= 0 &&
      this.#hasText(position, row)
    )
  }

  #hasText(position: number, row: Row): boolean {
    const { segments, segmentOf, offset, length } = this.#view.snapshot.text
    const segment = segments[segmentOf[position] ?? 0]
    const start = offset[position] ?? 0
    return segment !== undefined && bytesOf(row.text).equals(segment.subarray(start, start + (length[position] ?? 0)))
  }

  #numberOf(segment: Segment): number {
    const known = this.#segmentAt.get(segment)
    if (known !== undefined) return known
    this.#segmentAt.set(segment, this.#segments.length)
    return this.#segments.push(segment) - 1
  }

  #placeOf(name: string): number {
    const { names } = this.#layout
    let low = 0
    let high = names.length
    while (low < high) {
      const middle = (low + high) >>> 1
      if (compareCodePoints(names[middle] ?? '', name) < 0) low = middle + 1
      else high = middle
    }
    return low
  }
}

function shared(column: Uint32Array): Uint32Array {
  const copy = new Uint32Array(new SharedArrayBuffer(column.byteLength))
  copy.set(column)
  return copy
}

function sharedBytes(bytes: Uint8Array): Uint8Array {
  const copy = new Uint8Array(new SharedArrayBuffer(bytes.byteLength))
  copy.set(bytes)
  return copy
}

function sharedTable({ bytes, offsets }: StringTable): StringTable {
  return { bytes: sharedBytes(bytes), offsets: shared(offsets) }
}

function sharedArena({ segments, segmentOf, offset, length }: Arena): Arena {
  return { segments: segments.map(sharedBytes), segmentOf: shared(segmentOf), offset: shared(offset), length: shared(length) }
}
