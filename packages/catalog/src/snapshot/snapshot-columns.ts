import { type Steps, sortInSteps } from '@thv/kernel/steps'
import type { CatalogEntry } from '../catalog-entry.ts'
import { compareCodePoints } from '../text.ts'
import { type Instant, parseInstant } from './instant.ts'
import { DELETED, LATEST, type SnapshotData } from './snapshot-data.ts'
import { stringTable } from './string-table.ts'

/** Values of one entry for the columns of a snapshot. */
export interface PlacedEntry {
  /** Well-formed. */
  readonly version: string
  readonly deleted: boolean
  readonly updatedMs: number
  readonly updatedNs: number
  readonly publishedMs: number
  readonly publishedNs: number
}

export interface Placement {
  /** Sorted by code point. */
  readonly names: readonly string[]
  readonly nameStart: Uint32Array<ArrayBuffer>
  /** By name, then version ascending. */
  readonly placed: readonly PlacedEntry[]
}

export type SnapshotColumns = Omit<SnapshotData, 'json' | 'text'>

const ENTRIES_PER_STEP = 1024
// Unreadable times err to the side that loses nothing: a reader of changes sees the entry, publication order puts it last.
const ALWAYS_NEW: Instant = { ms: Number.POSITIVE_INFINITY, ns: 0 }
const OLDEST: Instant = { ms: Number.NEGATIVE_INFINITY, ns: 0 }

/** All of a snapshot but its texts. */
export function* snapshotColumns({ names, nameStart, placed }: Placement): Steps<SnapshotColumns> {
  return {
    count: placed.length,
    names: yield* stringTable(names),
    nameStart,
    ...(yield* versionColumns(placed)),
    flags: yield* flagsOf(placed, nameStart),
    ...(yield* timeColumns(placed, nameStart)),
  }
}

/** Unreadable times err to the side that loses nothing. */
export function timesOf(
  entry: Pick<CatalogEntry, 'updatedAt' | 'publishedAt'>,
  parse: (text: string) => Instant | undefined = parseInstant,
): Omit<PlacedEntry, 'version' | 'deleted'> {
  const updated = parse(entry.updatedAt) ?? ALWAYS_NEW
  const published = parse(entry.publishedAt) ?? OLDEST
  return { updatedMs: updated.ms, updatedNs: updated.ns, publishedMs: published.ms, publishedNs: published.ns }
}

/** The total order behind lists and cursors. */
export function versionOrder(compareVersions: (a: string, b: string) => number): (a: string, b: string) => number {
  return (a, b) => compareVersions(a, b) || compareCodePoints(a, b)
}

function* flagsOf(placed: readonly PlacedEntry[], nameStart: Uint32Array): Steps<Uint8Array<ArrayBuffer>> {
  const flags = new Uint8Array(placed.length)
  for (let n = 0; n + 1 < nameStart.length; n++) {
    let latest = false
    for (let p = (nameStart[n + 1] ?? 0) - 1; p >= (nameStart[n] ?? 0); p--) {
      if (placed[p]?.deleted) flags[p] = DELETED
      else if (!latest) flags[p] = LATEST
      latest ||= flags[p] === LATEST
    }
    if (n % ENTRIES_PER_STEP === 0) yield
  }
  return flags
}

function* versionColumns(placed: readonly PlacedEntry[]): Steps<Pick<SnapshotData, 'versions' | 'versionOf'>> {
  const ids = new Map<string, number>()
  const seen = new Uint32Array(placed.length)
  for (let p = 0; p < placed.length; p++) {
    const version = placed[p]?.version ?? ''
    const id = ids.get(version) ?? ids.size
    if (id === ids.size) ids.set(version, id)
    seen[p] = id
    if (p % ENTRIES_PER_STEP === 0) yield
  }
  const sorted = yield* sortInSteps([...ids.keys()], compareCodePoints)
  const rank = new Uint32Array(sorted.length)
  for (let r = 0; r < sorted.length; r++) {
    rank[ids.get(sorted[r] ?? '') ?? 0] = r
    if (r % ENTRIES_PER_STEP === 0) yield
  }
  return { versions: yield* stringTable(sorted), versionOf: seen.map((id) => rank[id] ?? 0) }
}

function* timeColumns(placed: readonly PlacedEntry[], nameStart: Uint32Array): Steps<TimeColumns> {
  const updatedMs = new Float64Array(placed.length)
  const updatedNs = new Uint32Array(placed.length)
  for (const [p, entry] of placed.entries()) {
    updatedMs[p] = entry.updatedMs
    updatedNs[p] = entry.updatedNs
    if (p % ENTRIES_PER_STEP === 0) yield
  }
  const byPublication = new Uint32Array(placed.length).map((_, p) => p)
  const newestFirst = (a: number, b: number) => byPublicationOf(placed[b], placed[a]) || b - a
  for (let n = 0; n + 1 < nameStart.length; n++) {
    const start = nameStart[n] ?? 0
    const end = nameStart[n + 1] ?? 0
    if (end - start > 1) byPublication.set(yield* sortInSteps([...byPublication.subarray(start, end)], newestFirst), start)
    if (n % ENTRIES_PER_STEP === 0) yield
  }
  return { updatedMs, updatedNs, byPublication }
}

type TimeColumns = Pick<SnapshotData, 'updatedMs' | 'updatedNs' | 'byPublication'>

function byPublicationOf(a: PlacedEntry | undefined, b: PlacedEntry | undefined): number {
  if (!a || !b) return 0
  if (a.publishedMs !== b.publishedMs) return a.publishedMs < b.publishedMs ? -1 : 1
  return a.publishedNs - b.publishedNs
}
