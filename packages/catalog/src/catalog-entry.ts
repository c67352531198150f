/** JSON as it was read: members in their order, nothing dropped. */
export type Json = null | boolean | number | string | readonly Json[] | JsonObject

export interface JsonObject {
  readonly [name: string]: Json
}

/** One version of one server, as a registry serves it. */
export interface CatalogEntry {
  /** `namespace/name`, as in the document. */
  readonly name: string
  readonly version: string
  /** The `server.json` document, whole and in its own order. */
  readonly document: JsonObject
  readonly status: EntryStatus
  readonly statusMessage?: string
  /** RFC 3339. */
  readonly publishedAt: string
  readonly updatedAt: string
  readonly statusChangedAt: string
  /** Which of the registry's sources it came from. */
  readonly source: string
}

export type EntryStatus = 'active' | 'deprecated' | 'deleted'

/** A problem of a document, and its location. */
export interface DocumentProblem {
  /** RFC 6901, '' for the whole. */
  readonly pointer: string
  readonly message: string
}
