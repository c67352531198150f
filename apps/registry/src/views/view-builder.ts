import { createArenaWriter, SEGMENT_BYTES } from '@thv/catalog/snapshot/arena'
import { type PlacedEntry, snapshotColumns, versionOrder } from '@thv/catalog/snapshot/snapshot-columns'
import { FIELD_END, type SnapshotData } from '@thv/catalog/snapshot/snapshot-data'
import type { Claims } from '@thv/catalog/sources/fetch/source-config'
import { compareVersions } from '@thv/catalog/version-order'
import type { Steps } from '@thv/kernel/steps'
import type { Catalog } from './catalog.ts'
import { type Arenas, type Row, rewriteMeta } from './catalog-row.ts'
import { claimsKey } from './claim-key.ts'
import { shownVersions } from './shadowing.ts'
import type { Segment, Span } from './shared-arena.ts'
import type { Group } from './version-group.ts'

export interface ViewSpec {
  /** First wins. */
  readonly sources: readonly ViewSource[]
  /** Keys of the claims that the reader may see; undefined: all. */
  readonly visible: ReadonlySet<string> | undefined
  /** Epoch ms: nothing is older, because what the registry consists of changed then. */
  readonly floorMs: number
}

export interface ViewSource {
  readonly name: string
  readonly claims: Claims | undefined
}

export interface BuiltView {
  readonly snapshot: SnapshotData
  /** Each server by its latest version, for search. */
  readonly latest: readonly LatestRow[]
  /** The different claims of what the sources have, `visible` or not, in the order of their keys. */
  readonly claimSets: readonly (readonly [key: string, claims: Claims | undefined])[]
}

export interface LatestRow {
  readonly name: string
  readonly row: Row
}

/** Builds one view again and again, and keeps what is its own: the entries that it shows otherwise than their source has them. */
export interface ViewBuilder {
  build(catalog: Catalog, spec: ViewSpec): Steps<BuiltView>
  /** It is not needed any more. */
  release(): void
}

const PER_STEP = 1024
const order = versionOrder(compareVersions)

export function createViewBuilder(): ViewBuilder {
  let variants = new Map<Row, Variant>()
  let arenas: Arenas | undefined

  function* build(catalog: Catalog, spec: ViewSpec): Steps<BuiltView> {
    // Rows have moved: variants of old segments would keep these alive.
    if (arenas !== catalog.arenas) variants = new Map()
    arenas = catalog.arenas
    const kept = new Map<Row, Variant>()
    const claimSets = new Map<string, Claims | undefined>()
    const groupsOf = visibleGroups(spec, claimSets)
    const names: string[] = []
    const starts: number[] = [0]
    const placed: Placed[] = []
    const latest: LatestRow[] = []
    let name = ''
    for (const [i, slot] of catalog.slots.entries()) {
      if (i % PER_STEP === 0) yield
      const groups = groupsOf(slot.groups)
      const [first] = groups
      if (first === undefined) continue
      name = slot.name
      if (groups.length === 1) for (const row of first.rows) place(row, row.updatedMs, false)
      else for (const { row, updatedMs, gone } of shownVersions(groups, order)) place(row, updatedMs, gone)
      names.push(name)
      starts.push(placed.length)
    }
    for (const [row, variant] of variants) if (kept.get(row) !== variant) catalog.arenas.json.release(variant.json)
    variants = kept
    const columns = yield* snapshotColumns({ names, nameStart: Uint32Array.from(starts), placed })
    return { snapshot: { ...columns, ...(yield* arenaColumns(placed)) }, latest, claimSets: sorted(claimSets) }

    function place(row: Row, changedMs: number, gone: boolean): void {
      const item = placedAs(row, Math.max(changedMs, spec.floorMs), gone)
      placed.push(item)
      if (!item.deleted && row.isLatest) latest.push({ name, row })
    }

    function placedAs(row: Row, updatedMs: number, gone: boolean): Placed {
      if (updatedMs === row.updatedMs && !gone) return row
      const known = variants.get(row)
      const same = known?.updatedMs === updatedMs && known.deleted === (gone || row.deleted) && known.isLatest === (row.isLatest && !gone)
      const variant = same ? known : variantOf(row, { updatedMs, gone }, catalog.arenas.json)
      kept.set(row, variant)
      return variant
    }
  }

  return {
    build,
    release() {
      for (const { json } of variants.values()) arenas?.json.release(json)
      variants = new Map()
    },
  }
}

/** The same claims give the same list, in any order. */
function sorted(claimSets: ReadonlyMap<string, Claims | undefined>): BuiltView['claimSets'] {
  return [...claimSets].sort(([a], [b]) => (a < b ? -1 : 1))
}

type Placed = PlacedEntry & { readonly json: Span; readonly text: Span }

interface Variant extends Placed {
  readonly isLatest: boolean
}

function variantOf(row: Row, change: { updatedMs: number; gone: boolean }, arena: Arenas['json']): Variant {
  const { updatedMs, gone } = change
  const isLatest = row.isLatest && !gone
  const json = rewriteMeta(row, { isLatest, updatedAt: timeText(updatedMs), gone: gone && !row.deleted }, arena)
  const { version, publishedMs, publishedNs, text } = row
  return { version, publishedMs, publishedNs, updatedMs, updatedNs: 0, deleted: gone || row.deleted, isLatest, json, text }
}

const LAST_TIME = 8.64e15

function timeText(ms: number): string {
  return new Date(Math.min(ms, LAST_TIME)).toISOString()
}

/** The groups of a name that count, first source first; what claims there are is noted on the way. */
function visibleGroups(spec: ViewSpec, claimSets: Map<string, Claims | undefined>): (groups: readonly Group[]) => readonly Group[] {
  const ranks = new Map(spec.sources.map((source, rank) => [source.name, { rank, claims: source.claims, key: claimsKey(source.claims) }]))
  const rankOf = (group: Group): number => ranks.get(group.source)?.rank ?? 0

  function counts(group: Group): boolean {
    const source = ranks.get(group.source)
    if (!source) return false
    const key = group.claimsKey ?? source.key
    if (!claimSets.has(key)) claimSets.set(key, group.claims ?? source.claims)
    return spec.visible === undefined || spec.visible.has(key)
  }

  return (groups) => {
    const [only] = groups
    if (groups.length === 1 && only) return counts(only) ? groups : []
    return groups.filter(counts).sort((a, b) => rankOf(a) - rankOf(b))
  }
}

function* arenaColumns(placed: readonly Placed[]): Steps<Pick<SnapshotData, 'json' | 'text'>> {
  const segments = new Map<Segment, number>()
  const segmentOf = new Uint32Array(placed.length)
  const offset = new Uint32Array(placed.length)
  const length = new Uint32Array(placed.length)
  const textBytes = placed.reduce((sum, item) => sum + item.text.length + 1, 0)
  const text = createArenaWriter({ count: placed.length, end: FIELD_END, segmentBytes: Math.min(textBytes, SEGMENT_BYTES) })
  let last: Segment | undefined
  let segment = 0
  for (let p = 0; p < placed.length; p++) {
    const { json, text: words } = placed[p] as Placed
    if (json.segment !== last) {
      last = json.segment
      segment = segments.get(last) ?? segments.size
      segments.set(last, segment)
    }
    segmentOf[p] = segment
    offset[p] = json.offset
    length[p] = json.length
    text.appendFrom(words.segment.bytes, words.offset, words.length)
    if (p % PER_STEP === 0) yield
  }
  return { json: { segments: [...segments.keys()].map(({ bytes }) => bytes), segmentOf, offset, length }, text: text.finish() }
}
