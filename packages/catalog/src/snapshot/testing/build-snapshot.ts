import { runAtOnce, type Steps, sortInSteps } from '@thv/kernel/steps'
import type { CatalogEntry } from '../../catalog-entry.ts'
import { compareCodePoints } from '../../text.ts'
import { createArenaWriter } from '../arena.ts'
import { type PlacedEntry, snapshotColumns, timesOf, versionOrder } from '../snapshot-columns.ts'
import { FIELD_END, foldCase, LATEST, type SnapshotData } from '../snapshot-data.ts'

export interface SnapshotOptions {
  /** Precedence; versions it calls equal are put in order of their code points. Must be transitive. */
  readonly compareVersions: (a: string, b: string) => number
  /** The answer for one entry: JSON of one line, `{"server":…,"_meta":…}`. */
  readonly serialise: (entry: CatalogEntry, facts: { readonly isLatest: boolean }) => string
  readonly segmentBytes?: number | undefined
}

/** From everything at once, for comparison. Entries are the registry's own view: which source wins a name is settled before. Of equal (name, version) the first counts. */
export function buildSnapshot(entries: readonly CatalogEntry[], options: SnapshotOptions): SnapshotData {
  return runAtOnce(snapshotSteps(entries, options))
}

const ENTRIES_PER_STEP = 1024
const BYTES_PER_STEP = 256 * 1024

export function* snapshotSteps(entries: readonly CatalogEntry[], options: SnapshotOptions): Steps<SnapshotData> {
  const groups = yield* groupByName(entries)
  const names = yield* sortInSteps([...groups.keys()], compareCodePoints)
  const nameStart = new Uint32Array(names.length + 1)
  const ordered: CatalogEntry[] = []
  const order = versionOrder(options.compareVersions)
  for (const [n, name] of names.entries()) {
    const versions = [...(groups.get(name)?.values() ?? [])]
    const sorted = versions.length > 1 ? yield* sortInSteps(versions, (a, b) => order(a.version, b.version)) : versions
    for (const entry of sorted) ordered.push(entry)
    nameStart[n + 1] = ordered.length
    if (n % ENTRIES_PER_STEP === 0) yield
  }
  const columns = yield* snapshotColumns({ names, nameStart, placed: ordered.map(placedOf) })
  const { flags } = columns
  const json = createArenaWriter({ count: ordered.length, end: 0x2c, segmentBytes: options.segmentBytes })
  const text = createArenaWriter({ count: ordered.length, end: FIELD_END, segmentBytes: options.segmentBytes })
  let bytes = 0
  for (const [p, entry] of ordered.entries()) {
    bytes += json.append(options.serialise(entry, { isLatest: ((flags[p] ?? 0) & LATEST) !== 0 }))
    bytes += text.append(...searchedFields(entry).map(foldCase))
    if (bytes >= BYTES_PER_STEP) {
      bytes = 0
      yield
    }
  }
  return { ...columns, json: json.finish(), text: text.finish() }
}

/** Text that `search` looks into. */
export function searchedFields(entry: CatalogEntry): string[] {
  const { title, description } = entry.document
  return [entry.name, typeof title === 'string' ? title : '', typeof description === 'string' ? description : '']
}

function placedOf(entry: CatalogEntry): PlacedEntry {
  return { version: entry.version.toWellFormed(), deleted: entry.status === 'deleted', ...timesOf(entry) }
}

function* groupByName(entries: readonly CatalogEntry[]): Steps<Map<string, Map<string, CatalogEntry>>> {
  const groups = new Map<string, Map<string, CatalogEntry>>()
  for (const [i, entry] of entries.entries()) {
    const name = entry.name.toWellFormed()
    const version = entry.version.toWellFormed()
    const group = groups.get(name)
    if (!group) groups.set(name, new Map([[version, entry]]))
    else if (!group.has(version)) group.set(version, entry)
    if (i % ENTRIES_PER_STEP === 0) yield
  }
  return groups
}
