import type { EntryStatus, Json, JsonObject } from '@thv/catalog/catalog-entry'
import { isJsonObject } from '@thv/catalog/json-guard'
import { officialKey, ownKey, responseMeta, wrapDocumentText } from '@thv/catalog/official-envelope'
import type { Instant } from '@thv/catalog/snapshot/instant'
import { type PlacedEntry, timesOf } from '@thv/catalog/snapshot/snapshot-columns'
import { foldCase } from '@thv/catalog/snapshot/snapshot-data'
import type { StoredEntry } from '../store/registry-store.ts'
import { bytesOf, type SharedArena, type Span } from './shared-arena.ts'

/** One version of one server of one source. Its document is in the arenas alone: no string of it is kept. */
export interface Row extends PlacedEntry {
  readonly status: EntryStatus
  readonly revision: number
  /** The served document, with its `isLatest`. */
  json: Span
  isLatest: boolean
  /** Where, in `json`, the `_meta` object begins. */
  readonly metaAt: number
  /** Folded name, title and description, each with its end byte but the last. */
  text: Span
  /**
   * Its words for ranked search, once they have been looked for, and a mark of the list of words that they are numbers of: not the list, which
   * rows that are not searched any more would keep.
   */
  words: Uint32Array | undefined
  wordsOf: symbol | undefined
}

/** Both arenas of a catalog. */
export interface Arenas {
  readonly json: SharedArena
  readonly text: SharedArena
}

export interface RowContext {
  readonly arenas: Arenas
  readonly isLatest: boolean
  readonly parseInstant: (text: string) => Instant | undefined
}

/** No UTF-8 text contains it. */
const FIELD_END = new Uint8Array([0xff])

export function createRow(entry: StoredEntry, { arenas, isLatest, parseInstant }: RowContext): Row {
  const document = parse(entry.text)
  const meta = responseMeta({ ...entry, document }, isLatest, { source: entry.source })
  const served = wrapDocumentText(entry.text, meta)
  const textOf = (value: Json | undefined): string => foldCase(typeof value === 'string' ? value : '')
  return {
    version: entry.version.toWellFormed(),
    deleted: entry.status === 'deleted',
    ...timesOf(entry, parseInstant),
    status: entry.status,
    revision: entry.revision,
    isLatest,
    metaAt: Buffer.byteLength(entry.text) + META_BEHIND,
    json: arenas.json.append([served]),
    text: arenas.text.append([foldCase(entry.name), FIELD_END, textOf(document['title']), FIELD_END, textOf(document['description'])]),
    words: undefined,
    wordsOf: undefined,
  }
}

/** Difference between the served document and the row's own. */
export interface MetaChange {
  readonly isLatest: boolean
  /** RFC 3339. */
  readonly updatedAt?: string
  /** It is not there any more, since `updatedAt`, though its own source still has it. */
  readonly gone?: boolean
}

export function rewriteMeta(row: Row, change: MetaChange, arena: SharedArena): Span {
  const served = bytesOf(row.json)
  const meta = metaOf(row)
  const official = meta[officialKey] ?? {}
  const updatedAt = change.updatedAt ?? official['updatedAt'] ?? ''
  const { statusMessage, ...rest } = official
  const changed = {
    // The members stay in their order.
    ...(change.gone ? { ...rest, status: 'deleted', statusChangedAt: updatedAt } : official),
    updatedAt,
    isLatest: change.isLatest,
  }
  return arena.append([served.subarray(0, row.metaAt), JSON.stringify({ ...meta, [officialKey]: changed }), '}'])
}

/** The official block and ours. */
export function metaOf(row: Row): { readonly [officialKey]?: JsonObject; readonly [ownKey]?: JsonObject } {
  const served = bytesOf(row.json)
  return JSON.parse(served.toString('utf8', row.metaAt, served.length - 1))
}

export function documentOf(row: Row): JsonObject {
  return parse(documentText(row))
}

/** The document as the store has it. */
export function documentText(row: Row): string {
  return bytesOf(row.json).toString('utf8', DOCUMENT_AT, row.metaAt - META_KEY.length)
}

const DOCUMENT_AT = '{"server":'.length
const META_KEY = ',"_meta":'
const META_BEHIND = DOCUMENT_AT + META_KEY.length

/** The store keeps only what was checked; what cannot be read all the same is served as it is, and found by its name. */
function parse(text: string): JsonObject {
  try {
    const value = JSON.parse(text) as Json
    return isJsonObject(value) ? value : {}
  } catch {
    return {}
  }
}
