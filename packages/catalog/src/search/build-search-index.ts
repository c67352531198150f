import type { CatalogEntry } from '../catalog-entry.ts'
import { versionOrder } from '../snapshot/build-snapshot.ts'
import { runAtOnce, runInTurns, type Steps, sortInSteps, type TurnOptions } from '../snapshot/steps.ts'
import { stringTable } from '../snapshot/string-table.ts'
import { compareCodePoints } from '../text.ts'
import { type SearchDocument, searchDocumentOf } from './search-document.ts'
import { EXACT, exactTermsOf } from './search-filters.ts'
import { PAIR_BUCKETS, pairsOf, type SearchIndexData } from './search-index-data.ts'
import { splitCamelCase, wordsOf } from './search-text.ts'

export interface SearchIndexOptions {
  readonly compareVersions: (a: string, b: string) => number
}

/** Each server by its latest version that is not deleted, in the order of names: document `d` of the index is `names[d]`. */
export function buildSearchIndex(entries: readonly CatalogEntry[], options: SearchIndexOptions): SearchIndexData {
  return runAtOnce(entrySteps(entries, options))
}

/** The same, letting the event loop turn between pieces of a few milliseconds. `entries` must not change meanwhile. */
export function buildSearchIndexInTurns(
  entries: readonly CatalogEntry[],
  options: SearchIndexOptions & TurnOptions,
): Promise<SearchIndexData> {
  return runInTurns(entrySteps(entries, options), options)
}

/** Equal scores are given in the documents' order. */
export function indexDocuments(documents: readonly SearchDocument[]): SearchIndexData {
  return runAtOnce(indexSteps(documents))
}

/** How much a word says, by where it stands. The namespace is shared by many servers, so it says little. */
const WEIGHTS = { name: 6, title: 5, tags: 4, tools: 3, description: 2, namespace: 0.6 }
/** At this sum of weights the impact is one half: a second mention counts less than the first. */
const SATURATION = 4
const MAX_WORDS_PER_FIELD = 1024
const MAX_FIELD_LENGTH = 16_384
const ITEMS_PER_STEP = 128
const TERMS_PER_STEP = 2048

function* entrySteps(entries: readonly CatalogEntry[], options: SearchIndexOptions): Steps<SearchIndexData> {
  const order = versionOrder(options.compareVersions)
  const latest = new Map<string, CatalogEntry>()
  for (const [i, entry] of entries.entries()) {
    if (i % TERMS_PER_STEP === 0) yield
    if (entry.status === 'deleted') continue
    const other = latest.get(entry.name)
    if (!other || order(entry.version, other.version) > 0) latest.set(entry.name, entry)
  }
  const sorted = yield* sortInSteps([...latest.values()], (a, b) => compareCodePoints(a.name, b.name))
  const documents: SearchDocument[] = []
  for (const [i, entry] of sorted.entries()) {
    documents.push(searchDocumentOf(entry))
    if (i % ITEMS_PER_STEP === 0) yield
  }
  return yield* indexSteps(documents)
}

function* indexSteps(documents: readonly SearchDocument[]): Steps<SearchIndexData> {
  const terms = createSearchTerms()
  const occurrences: Occurrences[] = []
  for (const [d, document] of documents.entries()) {
    occurrences.push(terms.occurrences(document))
    if (d % ITEMS_PER_STEP === 0) yield
  }
  const names: string[] = documents.map((document) => document.name)
  return yield* occurrenceSteps({ names, occurrences, terms })
}

/** Words that documents were found to have. They outlive an index, so that the next one reads only documents that are new. */
export interface SearchTerms {
  readonly size: number
  occurrences(document: SearchDocument): Occurrences
  get(id: number): string
  /** All ids, in the order of the words. */
  sorted(): Steps<Uint32Array>
}

export function createSearchTerms(): SearchTerms {
  const ids = new Map<string, number>()
  const words: string[] = []
  let order = new Uint32Array(0)
  return {
    get size() {
      return words.length
    },
    get: (id) => words[id] ?? '',
    occurrences(document) {
      const sums = weightedWords(document)
      const terms = new Uint32Array(sums.size)
      let i = 0
      for (const word of sums.keys()) {
        const id = ids.get(word) ?? words.length
        if (id === words.length) {
          ids.set(word, id)
          words.push(word)
        }
        terms[i++] = id
      }
      return { terms, weights: Float32Array.from(sums.values()) }
    },
    *sorted() {
      const byWord = (a: number, b: number) => compareCodePoints(words[a] ?? '', words[b] ?? '')
      const known = order.length
      const fresh = yield* sortInSteps(
        Array.from({ length: words.length - known }, (_, i) => known + i),
        byWord,
      )
      const merged = new Uint32Array(words.length)
      let at = 0
      let k = 0
      for (const id of fresh) {
        while (k < known && byWord(order[k] ?? 0, id) < 0) {
          merged[at++] = order[k++] ?? 0
          if (at % TERMS_PER_STEP === 0) yield
        }
        merged[at++] = id
      }
      merged.set(order.subarray(k), at)
      order = merged
      return order
    },
  }
}

/** How much each word says about one document: nothing, for what filters alone look up. */
export interface Occurrences {
  readonly terms: Uint32Array
  readonly weights: Float32Array
}

export interface FoundWords {
  /** Of the documents, by code point. */
  readonly names: readonly string[]
  readonly occurrences: readonly Occurrences[]
  readonly terms: SearchTerms
}

/** The index of documents whose words are known. */
export function* occurrenceSteps({ names, occurrences, terms }: FoundWords): Steps<SearchIndexData> {
  const used = new Uint8Array(terms.size)
  for (const [d, found] of occurrences.entries()) {
    for (const id of found.terms) used[id] = 1
    if (d % TERMS_PER_STEP === 0) yield
  }
  const words: string[] = []
  const rank = new Uint32Array(terms.size)
  let exact = 0
  for (const id of yield* terms.sorted()) {
    if (used[id] !== 1) continue
    const term = terms.get(id)
    rank[id] = words.length
    words.push(term)
    if (term.startsWith(EXACT)) exact++
    if (words.length % TERMS_PER_STEP === 0) yield
  }
  return {
    terms: yield* stringTable(words),
    ...(yield* postingsOf(occurrences, { rank, count: words.length, exact })),
    ...(yield* pairLists(words, exact)),
    ...(yield* nameTables(names)),
  }
}

function* nameTables(names: readonly string[]): Steps<Pick<SearchIndexData, 'names' | 'foldedNames' | 'foldedDocument'>> {
  const folded: { name: string; raw: string; d: number }[] = []
  const byName = (a: Folded, b: Folded) => compareCodePoints(a.name, b.name) || compareCodePoints(a.raw, b.raw)
  let inOrder = true
  for (const [d, raw] of names.entries()) {
    const item = { name: raw.toWellFormed().toLowerCase(), raw, d }
    const last = folded.at(-1)
    // Most catalogues are in lower case and come sorted.
    inOrder &&= last === undefined || byName(last, item) <= 0
    folded.push(item)
    if (d % TERMS_PER_STEP === 0) yield
  }
  const sorted = inOrder ? folded : yield* sortInSteps(folded, byName)
  const foldedDocument = new Uint32Array(sorted.length)
  for (const [i, { d }] of sorted.entries()) foldedDocument[i] = d
  yield
  return {
    names: yield* stringTable(names),
    foldedNames: yield* stringTable(sorted.map((item) => item.name)),
    foldedDocument,
  }
}

interface Folded {
  readonly name: string
  readonly raw: string
}

function weightedWords(document: SearchDocument): Map<string, number> {
  const sums = new Map<string, number>()
  const cut = document.name.lastIndexOf('/')
  addField(sums, document.name.slice(cut + 1), WEIGHTS.name)
  addField(sums, document.name.slice(0, Math.max(cut, 0)), WEIGHTS.namespace)
  addField(sums, document.title, WEIGHTS.title)
  addField(sums, document.tags.join(' '), WEIGHTS.tags)
  addField(sums, splitCamelCase(document.tools.join(' ').slice(0, MAX_FIELD_LENGTH)), WEIGHTS.tools)
  addField(sums, document.description, WEIGHTS.description)
  for (const term of exactTermsOf(document)) sums.set(term, 0)
  return sums
}

/** A word among few says more than one among many. */
function addField(sums: Map<string, number>, text: string, weight: number): void {
  const words = wordsOf(text.slice(0, MAX_FIELD_LENGTH), MAX_WORDS_PER_FIELD)
  const each = weight / (1 + 0.25 * Math.log2(Math.max(words.length, 1)))
  for (const word of new Set(words)) sums.set(word, (sums.get(word) ?? 0) + each)
}

function* postingsOf(
  found: readonly Occurrences[],
  { rank, count, exact }: { rank: Uint32Array; count: number; exact: number },
): Steps<Pick<SearchIndexData, 'postingStart' | 'postingDocument' | 'postingImpact'>> {
  const postingStart = new Uint32Array(count + 1)
  for (const [d, { terms }] of found.entries()) {
    for (const id of terms) bump(postingStart, (rank[id] ?? 0) + 1)
    if (d % TERMS_PER_STEP === 0) yield
  }
  accumulate(postingStart)
  const next = postingStart.slice()
  const total = postingStart.at(-1) ?? 0
  const postingDocument = new Uint32Array(total)
  const impactFrom = postingStart[exact] ?? 0
  const postingImpact = new Float32Array(total - impactFrom)
  for (const [d, { terms, weights }] of found.entries()) {
    for (let i = 0; i < terms.length; i++) {
      const at = bump(next, rank[terms[i] ?? 0] ?? 0)
      const weight = weights[i] ?? 0
      postingDocument[at] = d
      if (at >= impactFrom) postingImpact[at - impactFrom] = weight / (weight + SATURATION)
    }
    if (d % TERMS_PER_STEP === 0) yield
  }
  return { postingStart, postingDocument, postingImpact }
}

/** `exact`: so many terms at the beginning are none that a word may mean. */
function* pairLists(terms: readonly string[], exact: number): Steps<Pick<SearchIndexData, 'pairStart' | 'pairTerm'>> {
  const pairStart = new Uint32Array(PAIR_BUCKETS + 1)
  for (let t = exact; t < terms.length; t++) {
    for (const bucket of pairsOf(terms[t] ?? '')) bump(pairStart, bucket + 1)
    if (t % TERMS_PER_STEP === 0) yield
  }
  accumulate(pairStart)
  const next = pairStart.slice()
  const pairTerm = new Uint32Array(pairStart.at(-1) ?? 0)
  for (let t = exact; t < terms.length; t++) {
    for (const bucket of pairsOf(terms[t] ?? '')) pairTerm[bump(next, bucket)] = t
    if (t % TERMS_PER_STEP === 0) yield
  }
  return { pairStart, pairTerm }
}

/** Counts one up and gives what it was. */
function bump(counts: Uint32Array, at: number): number {
  const was = counts[at] ?? 0
  counts[at] = was + 1
  return was
}

function accumulate(counts: Uint32Array): void {
  for (let i = 1; i < counts.length; i++) counts[i] = (counts[i] ?? 0) + (counts[i - 1] ?? 0)
}
