import { jsonEqual } from '@thv/kernel/json'
import type { EntryStatus, JsonObject } from '../../catalog-entry.ts'
import type { Claims } from '../../sources/fetch/source-config.ts'

/** One version of one server of the export. */
export interface ExportedEntry {
  readonly name: string
  readonly version: string
  /** May be put together at every look, and is then no member of its own that a spread would copy. */
  readonly text: string
  readonly tags: readonly string[]
  readonly claims?: Claims
  readonly status?: EntryStatus
  readonly statusMessage?: string
  readonly publishedAt?: string
  readonly updatedAt?: string
}

export function isSameEntry(a: ExportedEntry, b: ExportedEntry): boolean {
  return a === b || (jsonEqual(a, b) && a.text === b.text)
}

export function compact(members: Readonly<Record<string, unknown>>): JsonObject {
  return Object.fromEntries(Object.entries(members).filter(([, value]) => value !== undefined)) as JsonObject
}
