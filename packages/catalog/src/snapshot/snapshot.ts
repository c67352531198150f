import { encodeCursor } from './cursor.ts'
import { type CheckedQuery, checkQuery, isProblem, type ListQuery, type QueryProblem } from './list-query.ts'
import { type Page, pageOf, sliceOf } from './page.ts'
import { versionOrder } from './snapshot-columns.ts'
import { DELETED, LATEST, type SnapshotData } from './snapshot-data.ts'
import { readStringTable } from './string-table.ts'
import { createTextFinder } from './text-finder.ts'

/** One registry at one moment. It never changes, so a request may keep it while a newer one takes its place. */
export interface Snapshot {
  readonly count: number
  list(query?: ListQuery): Page | QueryProblem
  /** Newest publication first, then version descending. Undefined: no such server, or all of it is deleted. */
  versions(name: string, options?: VersionOptions): Page | undefined
  /** `latest` is the highest that is not deleted. */
  version(name: string, version: string, options?: VersionOptions): Uint8Array | undefined
  /** All names, by code point: place `n` of this order is what `name(n)` gives. */
  readonly nameCount: number
  name(index: number): string
}

export interface VersionOptions {
  readonly includeDeleted?: boolean | undefined
}

export function openSnapshot(data: SnapshotData, compareVersions: (a: string, b: string) => number): Snapshot {
  const names = readStringTable(data.names)
  const versions = readStringTable(data.versions)
  const finder = createTextFinder(data.text)
  const order = versionOrder(compareVersions)
  const { flags, nameStart, versionOf } = data
  // Buffers, because what is cut out of them is sent, and Node makes a Buffer of whatever is none.
  const segments = data.json.segments.map((bytes) => Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength))
  const json = { ...data.json, segments }

  /** The first position behind a cursor's place, whether or not that entry is still there. */
  function behind(place: { name: string; version: string }): number {
    const n = names.lowerBound(place.name)
    const start = nameStart[n] ?? data.count
    if (n >= names.size || names.get(n) !== place.name) return start
    let low = start
    let high = nameStart[n + 1] ?? data.count
    while (low < high) {
      const middle = (low + high) >>> 1
      if (order(versions.get(versionOf[middle] ?? 0), place.version) <= 0) low = middle + 1
      else high = middle
    }
    return low
  }

  function matching(query: CheckedQuery): number[] {
    const exact = query.version === undefined || query.version === 'latest' ? undefined : versions.find(query.version)
    const found: number[] = []
    if (exact === -1) return found
    const wanted = query.version === 'latest' ? LATEST : 0
    const unwanted = query.withDeleted ? 0 : DELETED
    let match = -1
    // One more than the page tells whether there is a next one.
    for (let p = query.after ? behind(query.after) : 0; p < data.count && found.length <= query.limit; p++) {
      const flag = flags[p] ?? 0
      if ((flag & wanted) !== wanted || (flag & unwanted) !== 0) continue
      if (exact !== undefined && versionOf[p] !== exact) continue
      if (query.since && !isNewer(p, query.since)) continue
      if (query.needle) {
        if (match < p) match = finder.next(query.needle, p)
        if (match === -1) break
        if (match !== p) continue
      }
      found.push(p)
    }
    return found
  }

  function isNewer(p: number, since: { ms: number; ns: number }): boolean {
    const ms = data.updatedMs[p] ?? 0
    return ms > since.ms || (ms === since.ms && (data.updatedNs[p] ?? 0) > since.ns)
  }

  function placeOf(p: number): { name: string; version: string } {
    let low = 0
    let high = names.size
    while (low + 1 < high) {
      const middle = (low + high) >>> 1
      if ((nameStart[middle] ?? 0) <= p) low = middle
      else high = middle
    }
    return { name: names.get(low), version: versions.get(versionOf[p] ?? 0) }
  }

  function rangeOf(name: string): { start: number; end: number } {
    const n = names.find(name)
    return n === -1 ? { start: 0, end: 0 } : { start: nameStart[n] ?? 0, end: nameStart[n + 1] ?? 0 }
  }

  return {
    count: data.count,
    nameCount: names.size,
    name: (index) => names.get(index),
    list(query = {}) {
      const checked = checkQuery(query)
      if (isProblem(checked)) return checked
      const found = matching(checked)
      if (found.length <= checked.limit) return pageOf(json, found)
      found.length = checked.limit
      return pageOf(json, found, encodeCursor(placeOf(found.at(-1) ?? 0), checked.filter))
    },
    versions(name, options = {}) {
      const { start, end } = rangeOf(name)
      const positions = data.byPublication.subarray(start, end)
      const shown = options.includeDeleted ? positions : positions.filter((p) => ((flags[p] ?? 0) & DELETED) === 0)
      return shown.length === 0 ? undefined : pageOf(json, shown)
    },
    version(name, version, options = {}) {
      const { start, end } = rangeOf(name)
      const exact = version === 'latest' ? -1 : versions.find(version)
      for (let p = start; p < end; p++) {
        const flag = flags[p] ?? 0
        if (version === 'latest' ? (flag & LATEST) === 0 : versionOf[p] !== exact) continue
        return (flag & DELETED) !== 0 && !options.includeDeleted ? undefined : sliceOf(json, { first: p, last: p, comma: false })
      }
      return undefined
    },
  }
}
