import { versionOrder } from '@thv/catalog/snapshot/snapshot-columns'
import type { Claims } from '@thv/catalog/sources/fetch/source-config'
import { compareVersions } from '@thv/catalog/version-order'
import { type Steps, sortInSteps } from '@thv/kernel/steps'
import { type Arenas, type Row, rewriteMeta } from './catalog-row.ts'

/** All versions that one source has of one server. */
export interface Group {
  readonly source: string
  /** Version ascending. */
  rows: Row[]
  /** New ones that belong between those: each put into its place at once, 50,000 versions took a minute. `settleGroup` does it. */
  late: Map<string, Row> | undefined
  /** Of the entry itself: of its newest row that is not deleted, or else of the newest; undefined: those of its source count. */
  claims: Claims | undefined
  claimsKey: string | undefined
  claimsRevision: number
}

const PER_STEP = 2048
const order = versionOrder(compareVersions)

export function createGroup(source: string): Group {
  return { source, rows: [], late: undefined, claims: undefined, claimsKey: undefined, claimsRevision: 0 }
}

export function rowOf(group: Group, version: string): Row | undefined {
  const row = group.rows[placeOf(group.rows, version)]
  return row?.version === version ? row : group.late?.get(version)
}

/** Takes the place of the row with the same version, if there is one. */
export function putRow(group: Group, row: Row): void {
  const { rows } = group
  const at = placeOf(rows, row.version)
  if (at === rows.length || rows[at]?.version === row.version) rows[at] = row
  else {
    group.late ??= new Map()
    group.late.set(row.version, row)
  }
}

/** A good guess until the group is settled: there is nothing newer among the rows that have their place. */
export function seemsLatest(group: Group, version: string): boolean {
  for (let i = group.rows.length - 1; i >= 0; i--) {
    const row = group.rows[i]
    if (row?.deleted === false) return order(row.version, version) <= 0
  }
  return true
}

/** A tombstone may keep claims from before those of the versions that are served. */
export function hasLiving(group: Group): boolean {
  for (let i = group.rows.length - 1; i >= 0; i--) if (group.rows[i]?.deleted === false) return true
  for (const row of group.late?.values() ?? []) if (!row.deleted) return true
  return false
}

export function* rowsOfGroup(group: Group): Generator<Row> {
  yield* group.rows
  if (group.late) yield* group.late.values()
}

/**
 * Puts all rows into their places and marks the latest. Claims hold for all versions of a server, so that what is latest is the same to
 * everybody who sees it.
 */
export function* settleGroup(group: Group, arenas: Arenas): Steps<void> {
  if (group.late) {
    const late = yield* sortInSteps([...group.late.values()], (a, b) => order(a.version, b.version))
    group.rows = yield* merged(group.rows, late)
    group.late = undefined
  }
  let latest = false
  for (let i = group.rows.length - 1; i >= 0; i--) {
    const row = group.rows[i] as Row
    const isLatest: boolean = !row.deleted && !latest
    latest ||= isLatest
    if (row.isLatest !== isLatest) mark(row, isLatest, arenas)
    if (i > 0 && i % PER_STEP === 0) yield
  }
}

function mark(row: Row, isLatest: boolean, arenas: Arenas): void {
  const old = row.json
  row.json = rewriteMeta(row, { isLatest }, arenas.json)
  row.isLatest = isLatest
  arenas.json.release(old)
}

function* merged(rows: readonly Row[], late: readonly Row[]): Steps<Row[]> {
  const all: Row[] = []
  let i = 0
  for (const row of late) {
    while (i < rows.length && order(rows[i]?.version ?? '', row.version) < 0) all.push(rows[i++] as Row)
    all.push(row)
    if (all.length % PER_STEP === 0) yield
  }
  while (i < rows.length) all.push(rows[i++] as Row)
  return all
}

/** Of the version, or of the first one above it. */
export function placeOf(rows: readonly Row[], version: string): number {
  let low = 0
  let high = rows.length
  while (low < high) {
    const middle = (low + high) >>> 1
    if (order(rows[middle]?.version ?? '', version) < 0) low = middle + 1
    else high = middle
  }
  return low
}
