import type { StringTable } from '../snapshot/string-table.ts'

/** The ranked index as plain data on buffers: a worker builds it and hands it over without a copy. */
export interface SearchIndexData {
  /** Names by document, in the order the documents came. */
  readonly names: StringTable
  /** Names in lower case, sorted by code point, and whose each is. */
  readonly foldedNames: StringTable
  readonly foldedDocument: Uint32Array<ArrayBuffer>
  /** First what filters look up, then all words; sorted by code point. */
  readonly terms: StringTable
  /** Term `t` occurs in `postingDocument[postingStart[t] .. postingStart[t + 1]]`. */
  readonly postingStart: Uint32Array<ArrayBuffer>
  readonly postingDocument: Uint32Array<ArrayBuffer>
  /** How much a word says about each: 0..1. What filters look up has none, so this begins where the words' postings do. */
  readonly postingImpact: Float32Array<ArrayBuffer>
  /** The words that contain a pair of letters, by the pair's bucket. */
  readonly pairStart: Uint32Array<ArrayBuffer>
  readonly pairTerm: Uint32Array<ArrayBuffer>
}

export const PAIR_BUCKETS = 4096

/** Distinct buckets of the pairs of letters, with the word's beginning and end. A shared bucket costs one comparison more, no more. */
export function pairsOf(word: string): Set<number> {
  const buckets = new Set<number>()
  let previous = 0
  for (let i = 0; i <= word.length; i++) {
    const unit = i < word.length ? word.charCodeAt(i) : 0
    buckets.add((Math.imul(previous, 131) + Math.imul(unit, 31)) & (PAIR_BUCKETS - 1))
    previous = unit
  }
  return buckets
}

export function searchIndexTransferList(data: SearchIndexData): ArrayBuffer[] {
  const tables = [data.names, data.foldedNames, data.terms].flatMap((table) => [table.bytes, table.offsets])
  const columns = [data.foldedDocument, data.postingStart, data.postingDocument, data.postingImpact, data.pairStart, data.pairTerm]
  return [...new Set([...tables, ...columns].map((view) => view.buffer).filter((buffer) => buffer instanceof ArrayBuffer))]
}
