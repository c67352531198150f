import type { EntryStatus, JsonObject } from '../../catalog-entry.ts'
import type { Claims } from '../../sources/fetch/source-config.ts'

/** One version of one server of the export. */
export interface ExportedEntry {
  readonly name: string
  readonly version: string
  readonly text: string
  readonly tags: readonly string[]
  readonly claims?: Claims
  readonly status?: EntryStatus
  readonly statusMessage?: string
  readonly publishedAt?: string
  readonly updatedAt?: string
}

export function compact(members: Readonly<Record<string, unknown>>): JsonObject {
  return Object.fromEntries(Object.entries(members).filter(([, value]) => value !== undefined)) as JsonObject
}
