import type { Json } from '@thv/catalog/catalog-entry'
import { officialKey } from '@thv/catalog/official-envelope'
import { compareCodePoints } from '@thv/catalog/text'
import type { Catalog, NameSlot } from '../views/catalog.ts'
import { documentOf, metaOf, type Row } from '../views/catalog-row.ts'
import { type Group, placeOf } from '../views/version-group.ts'
import type { EntrySummary } from './engine.ts'

/** The end of a page. */
export interface EntryPlace {
  readonly name: string
  readonly version: string
}

export interface EntryPage {
  readonly entries: readonly EntrySummary[]
  /** Undefined: that was all. */
  readonly next: EntryPlace | undefined
}

const ENTRIES_PER_PAGE = 500

/** Entries of one source, by name, then version ascending. */
export function entryPage(catalog: Catalog, source: string, after: EntryPlace | undefined): EntryPage {
  const entries: EntrySummary[] = []
  const { slots } = catalog
  for (let i = after === undefined ? 0 : firstFrom(slots, after.name); i < slots.length; i++) {
    const slot = slots[i]
    const group = slot?.groups.find((group) => group.source === source)
    if (!slot || !group) continue
    for (const row of group.rows.slice(slot.name === after?.name ? firstBehind(group, after.version) : 0)) {
      if (entries.length === ENTRIES_PER_PAGE) return { entries, next: endOf(entries) }
      entries.push(summaryOf(slot.name, group, row))
    }
  }
  return { entries, next: undefined }
}

function endOf(entries: readonly EntrySummary[]): EntryPlace | undefined {
  const last = entries.at(-1)
  return last && { name: last.name, version: last.version }
}

function firstBehind({ rows }: Group, version: string): number {
  const at = placeOf(rows, version)
  return rows[at]?.version === version ? at + 1 : at
}

function firstFrom(slots: readonly NameSlot[], name: string): number {
  let low = 0
  let high = slots.length
  while (low < high) {
    const middle = (low + high) >>> 1
    if (compareCodePoints(slots[middle]?.name ?? '', name) < 0) low = middle + 1
    else high = middle
  }
  return low
}

function summaryOf(name: string, group: Group, row: Row): EntrySummary {
  const { title, description } = documentOf(row)
  const official = metaOf(row)[officialKey]
  const titleText = text(title)
  const descriptionText = text(description)
  return {
    name,
    version: row.version,
    ...(titleText !== undefined && { title: titleText }),
    ...(descriptionText !== undefined && { description: descriptionText }),
    status: row.status,
    ...(group.claims !== undefined && { claims: group.claims }),
    createdAt: text(official?.['publishedAt']) ?? '',
    updatedAt: text(official?.['updatedAt']) ?? '',
  }
}

function text(value: Json | undefined): string | undefined {
  return typeof value === 'string' ? value : undefined
}
