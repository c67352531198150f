import { createInstantParser } from '@thv/catalog/snapshot/instant'
import { compareCodePoints } from '@thv/catalog/text'
import { type Steps, sortInSteps } from '@thv/kernel/steps'
import type { StoredEntry } from '../store/registry-store.ts'
import { type Arenas, createRow, type Row } from './catalog-row.ts'
import { claimsKey } from './claim-key.ts'
import { bytesOf, createSharedArena, type Segment, type SharedArena } from './shared-arena.ts'
import { createGroup, type Group, hasLiving, putRow, rowOf, rowsOfGroup, seemsLatest, settleGroup } from './version-group.ts'

export interface NameSlot {
  readonly name: string
  readonly groups: Group[]
}

/**
 * The content of the store in serving order, with the served bytes. It follows the store by `add`; `settle` puts it in
 * order again before views are built from it.
 */
export interface Catalog {
  /** By code point. */
  readonly slots: readonly NameSlot[]
  readonly arenas: Arenas
  add(entry: StoredEntry): void
  /** To be run before anything is added to a source of the same name. */
  dropSources(sources: ReadonlySet<string>): Steps<void>
  settle(): Steps<void>
  /** The newest row of a source; 0 when it has none. */
  newest(source: string): Newest
  /** Moves with every change. */
  readonly stamp: number
  /** Names with other rows than at that stamp. Undefined: names, sources or claims have changed too, or it is long ago. */
  changedSince(stamp: number): ReadonlySet<NameSlot> | undefined
}

export interface Newest {
  readonly revision: number
  readonly updatedMs: number
}

const PER_STEP = 2048
/** More changes at once are not followed one by one. */
const MAX_RECENT = 256
const NOTHING: Newest = { revision: 0, updatedMs: 0 }

export function createCatalog(): Catalog {
  const byName = new Map<string, NameSlot>()
  let slots: NameSlot[] = []
  let fresh: NameSlot[] = []
  let arenas = newArenas()
  let inOrder = true
  let order: Order = NEVER_LOOKED
  const unsettled = new Set<Group>()
  const newest = new Map<string, Newest>()
  const versions = new Map<string, string>()
  const parseInstant = createInstantParser()
  let stamp = 0
  /** Changes up to this one are not known one by one. */
  let forgotten = 0
  let recent: { readonly stamp: number; readonly slot: NameSlot }[] = []

  function noteChange(slot: NameSlot): void {
    recent.push({ stamp: ++stamp, slot })
    if (recent.length > MAX_RECENT) forgotten = recent.shift()?.stamp ?? stamp
  }

  function noteStructure(): void {
    forgotten = ++stamp
    recent = []
  }

  function slotOf(name: string): NameSlot {
    const known = byName.get(name)
    if (known) return known
    const slot = { name, groups: [] }
    byName.set(name, slot)
    fresh.push(slot)
    return slot
  }

  function groupOf(slot: NameSlot, source: string): Group {
    const known = slot.groups.find((group) => group.source === source)
    if (known) return known
    const group = createGroup(source)
    slot.groups.push(group)
    noteStructure()
    return group
  }

  /** Equal texts are one string: 100,000 entries have few different versions. */
  function interned(version: string): string {
    const known = versions.get(version)
    if (known !== undefined) return known
    versions.set(version, version)
    return version
  }

  function add(entry: StoredEntry): void {
    const slot = slotOf(entry.name.toWellFormed())
    const group = groupOf(slot, entry.source)
    const version = interned(entry.version.toWellFormed())
    const old = rowOf(group, version)
    if (old && old.revision >= entry.revision) return
    const isLatest = entry.status !== 'deleted' && seemsLatest(group, version)
    const row = createRow({ ...entry, version }, { arenas, isLatest, parseInstant })
    inOrder = false
    putRow(group, row)
    if (old) releaseRow(old)
    if (group.rows.length > 1 || group.late) unsettled.add(group)
    if (entry.revision >= group.claimsRevision && (entry.status !== 'deleted' || !hasLiving(group))) {
      const key = entry.claims && claimsKey(entry.claims)
      if (key !== group.claimsKey) noteStructure()
      group.claims = entry.claims
      group.claimsKey = key
      group.claimsRevision = entry.revision
    }
    noteChange(slot)
    const last = newest.get(entry.source) ?? NOTHING
    newest.set(entry.source, {
      revision: Math.max(last.revision, entry.revision),
      updatedMs: Math.max(last.updatedMs, Number.isFinite(row.updatedMs) ? row.updatedMs : 0),
    })
  }

  function releaseRow(row: Row): void {
    arenas.json.release(row.json)
    arenas.text.release(row.text)
  }

  function* settle(): Steps<void> {
    if (inOrder) return
    let done = 0
    for (const group of unsettled) {
      yield* settleGroup(group, arenas)
      if (++done % PER_STEP === 0) yield
    }
    unsettled.clear()
    yield* mergeFresh()
    if (yield* isScattered()) yield* moveTogether()
    inOrder = true
  }

  /** A write makes two breaks at most: the rows are looked at only when these could be too many. */
  function* isScattered(): Steps<boolean> {
    const { json } = arenas
    if (json.waste > FEW_BYTES && json.waste > json.live / 2) return true
    if (order.breaks + 2 * (json.writes - order.writes) <= order.rows * MAX_BREAKS) return false
    order = yield* orderOf(slots, json)
    return order.rows > FEW_ROWS && order.breaks > order.rows * MAX_BREAKS
  }

  function* dropSources(sources: ReadonlySet<string>): Steps<void> {
    if (![...sources].some((source) => newest.has(source))) return
    for (const source of sources) newest.delete(source)
    noteStructure()
    inOrder = false
    order = NEVER_LOOKED
    yield* mergeFresh()
    const kept: NameSlot[] = []
    for (const [i, slot] of slots.entries()) {
      for (const group of slot.groups) {
        if (!sources.has(group.source)) continue
        unsettled.delete(group)
        for (const row of rowsOfGroup(group)) releaseRow(row)
      }
      const left = slot.groups.filter((group) => !sources.has(group.source))
      slot.groups.splice(0, slot.groups.length, ...left)
      if (left.length > 0) kept.push(slot)
      else byName.delete(slot.name)
      if (i % PER_STEP === 0) yield
    }
    slots = kept
  }

  function* mergeFresh(): Steps<void> {
    if (fresh.length === 0) return
    const sorted = yield* sortInSteps(fresh, (a, b) => compareCodePoints(a.name, b.name))
    fresh = []
    const merged: NameSlot[] = []
    let i = 0
    for (const slot of sorted) {
      while (i < slots.length && compareCodePoints(slots[i]?.name ?? '', slot.name) < 0) {
        merged.push(slots[i++] as NameSlot)
        if (i % PER_STEP === 0) yield
      }
      merged.push(slot)
    }
    for (; i < slots.length; i++) merged.push(slots[i] as NameSlot)
    slots = merged
  }

  /** Rewrites everything in the order of lists: pages are one slice again, and what was released is let go with the old segments. */
  function* moveTogether(): Steps<void> {
    arenas = newArenas()
    order = NEVER_LOOKED
    let bytes = 0
    for (const row of rowsOf(slots)) {
      row.json = arenas.json.append([bytesOf(row.json)])
      row.text = arenas.text.append([bytesOf(row.text)])
      bytes += row.json.length + row.text.length
      if (bytes > 1 << 20) {
        bytes = 0
        yield
      }
    }
  }

  return {
    get slots() {
      return slots
    },
    get arenas() {
      return arenas
    },
    add,
    dropSources,
    settle,
    newest: (source) => newest.get(source) ?? NOTHING,
    get stamp() {
      return stamp
    },
    changedSince: (since) => (since < forgotten ? undefined : new Set(recent.filter((each) => each.stamp > since).map(({ slot }) => slot))),
  }
}

export function* rowsOf(slots: readonly NameSlot[]): Generator<Row> {
  for (const slot of slots) for (const group of slot.groups) yield* group.rows
}

function newArenas(): Arenas {
  return { json: createSharedArena({ end: 0x2c }), text: createSharedArena({ end: 0xff }) }
}

const FEW_BYTES = 4 << 20
/** One page of 30 then has about four slices. */
const MAX_BREAKS = 0.1

const FEW_ROWS = 100

/** How often the next one of a list stands elsewhere than behind the one before, when it was looked at. */
interface Order {
  readonly rows: number
  readonly breaks: number
  /** Of the arena, until then. */
  readonly writes: number
}

const NEVER_LOOKED: Order = { rows: 0, breaks: 0, writes: -1 }

function* orderOf(slots: readonly NameSlot[], { writes }: SharedArena): Steps<Order> {
  let breaks = 0
  let rows = 0
  let segment: Segment | undefined
  let next = 0
  for (const { json } of rowsOf(slots)) {
    if (json.segment !== segment || json.offset !== next) breaks++
    segment = json.segment
    next = json.offset + json.length + 1
    if (++rows % PER_STEP === 0) yield
  }
  return { rows, breaks, writes }
}
