import { createArenaWriter, SEGMENT_BYTES } from '@thv/catalog/snapshot/arena'
import { type PlacedEntry, snapshotColumns, versionOrder } from '@thv/catalog/snapshot/snapshot-columns'
import { FIELD_END, type SnapshotData } from '@thv/catalog/snapshot/snapshot-data'
import type { Claims } from '@thv/catalog/sources/fetch/source-config'
import { compareVersions } from '@thv/catalog/version-order'
import type { Steps } from '@thv/kernel/steps'
import type { Catalog, NameSlot } from './catalog.ts'
import { type Arenas, type Row, rewriteMeta } from './catalog-row.ts'
import { claimsKey } from './claim-key.ts'
import { type BuiltView, type Change, KeptView, type LatestRow } from './kept-view.ts'
import { type Shown, shownVersions } from './shadowing.ts'
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

/** Builds one view again and again, and keeps what is its own: the entries that it shows otherwise than their source has them. */
export interface ViewBuilder {
  build(catalog: Catalog, spec: ViewSpec): Steps<BuiltView>
  /** It is not needed any more. */
  release(): void
}

const PER_STEP = 1024
/** Larger views are laid out as a whole each time: what a kept one needs is about 50 bytes for each entry. */
const MAX_KEPT = 20_000
/** A name with more versions is laid out with the whole. */
const MAX_VERSIONS = 256
const order = versionOrder(compareVersions)

export function createViewBuilder(): ViewBuilder {
  let variants = new Map<Row, Variant>()
  let arenas: Arenas | undefined
  let last: { readonly view: KeptView; readonly identity: string; stamp: number } | undefined

  function* build(catalog: Catalog, spec: ViewSpec): Steps<BuiltView> {
    // Rows have moved: variants of old segments would keep these alive.
    if (arenas !== catalog.arenas) {
      variants = new Map()
      last = undefined
    }
    arenas = catalog.arenas
    const identity = JSON.stringify([spec.sources, spec.visible && [...spec.visible].sort(), spec.floorMs])
    const { stamp } = catalog
    const changed = last?.identity === identity ? catalog.changedSince(last.stamp) : undefined
    if (last !== undefined && changed !== undefined && update(last.view, { catalog, spec, changed })) {
      last.stamp = stamp
      return last.view.view
    }
    last = undefined
    const { view, layout } = yield* buildWhole(catalog, spec)
    if (layout.rows.length > MAX_KEPT) return view
    last = { view: new KeptView(layout, view), identity, stamp }
    return last.view.view
  }

  function* buildWhole(catalog: Catalog, spec: ViewSpec) {
    const kept = new Map<Row, Variant>()
    const claimSets = new Map<string, Claims | undefined>()
    const groupsOf = visibleGroups(spec, claimSets)
    const names: string[] = []
    const starts: number[] = [0]
    const rows: Row[] = []
    const placed: Placed[] = []
    const latest: LatestRow[] = []
    const latestAt: number[] = []
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
    const { segments, ...arenas } = yield* arenaColumns(placed)
    const view: BuiltView = { snapshot: { ...columns, ...arenas }, latest, claimSets: sorted(claimSets) }
    return { view, layout: { names, starts, rows, segments, latestAt: Int32Array.from(latestAt) } }

    function place(row: Row, changedMs: number, gone: boolean): void {
      const item = placedAs(row, Math.max(changedMs, spec.floorMs), gone)
      placed.push(item)
      rows.push(row)
      const isLatest = !item.deleted && row.isLatest
      latestAt.push(isLatest ? latest.length : -1)
      if (isLatest) latest.push({ name, row })
    }

    function placedAs(row: Row, updatedMs: number, gone: boolean): Placed {
      if (updatedMs === row.updatedMs && !gone) return row
      const variant = variantAs(row, { updatedMs, gone }, catalog.arenas.json)
      kept.set(row, variant)
      return variant
    }
  }

  /** The one from before, if it is the same. */
  function variantAs(row: Row, { updatedMs, gone }: { updatedMs: number; gone: boolean }, arena: Arenas['json']): Variant {
    const known = variants.get(row)
    const same = known?.updatedMs === updatedMs && known.deleted === (gone || row.deleted) && known.isLatest === (row.isLatest && !gone)
    return same ? known : variantOf(row, { updatedMs, gone }, arena)
  }

  /** False, and nothing is done: more than documents and their times is another. */
  function update(
    view: KeptView,
    { catalog, spec, changed }: { catalog: Catalog; spec: ViewSpec; changed: ReadonlySet<NameSlot> },
  ): boolean {
    const groupsOf = visibleGroups(spec, new Map())
    const changes: Change[] = []
    for (const slot of changed) {
      const groups = groupsOf(slot.groups)
      if (groups.some(({ rows }) => rows.length > MAX_VERSIONS)) return false
      const found = view.changesOf(slot.name, shownOf(groups))
      if (found === undefined) return false
      changes.push(...found)
    }
    const arena = catalog.arenas.json
    for (const change of changes) {
      const { row, gone } = change.shown
      const updatedMs = Math.max(change.shown.updatedMs, spec.floorMs)
      const variant = updatedMs === row.updatedMs && !gone ? undefined : variantAs(row, { updatedMs, gone }, arena)
      for (const old of new Set([view.rowAt(change.position), row])) {
        const known = old && variants.get(old)
        if (!old || known === undefined || known === variant) continue
        arena.release(known.json)
        variants.delete(old)
      }
      if (variant) variants.set(row, variant)
      view.put(change, variant ?? row)
    }
    view.settle(changes)
    return true
  }

  return {
    build,
    release() {
      for (const { json } of variants.values()) arenas?.json.release(json)
      variants = new Map()
      last = undefined
    },
  }
}

function shownOf(groups: readonly Group[]): readonly Shown[] {
  const [first] = groups
  if (first === undefined) return []
  if (groups.length > 1) return shownVersions(groups, order)
  return first.rows.map((row) => ({ row, updatedMs: row.updatedMs, gone: false }))
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

function* arenaColumns(placed: readonly Placed[]): Steps<Pick<SnapshotData, 'json' | 'text'> & { segments: readonly Segment[] }> {
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
  const all = [...segments.keys()]
  return { json: { segments: all.map(({ bytes }) => bytes), segmentOf, offset, length }, text: text.finish(), segments: all }
}
