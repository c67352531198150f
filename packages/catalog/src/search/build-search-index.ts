import type { CatalogEntry } from '../catalog-entry.ts'
import { versionOrder } from '../snapshot/build-snapshot.ts'
import { runAtOnce, runInTurns, type Steps, sortInSteps, type TurnOptions } from '../snapshot/steps.ts'
import { stringTable } from '../snapshot/string-table.ts'
import { compareCodePoints } from '../text.ts'
import { type SearchDocument, searchDocumentOf } from './search-document.ts'
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
  const ids = new Map<string, number>()
  const found: Occurrences[] = []
  for (const [d, document] of documents.entries()) {
    const occurrences = new Map<number, number>()
    for (const [word, weight] of weightedWords(document)) {
      const id = ids.get(word) ?? ids.size
      if (id === ids.size) ids.set(word, id)
      occurrences.set(id, weight)
    }
    found.push({ terms: Uint32Array.from(occurrences.keys()), weights: Float32Array.from(occurrences.values()) })
    if (d % ITEMS_PER_STEP === 0) yield
  }
  const terms = yield* sortInSteps([...ids.keys()], compareCodePoints)
  const rank = new Uint32Array(terms.length)
  for (const [r, term] of terms.entries()) {
    rank[ids.get(term) ?? 0] = r
    if (r % TERMS_PER_STEP === 0) yield
  }
  return {
    terms: yield* stringTable(terms),
    ...(yield* postingsOf(found, rank)),
    ...(yield* pairLists(terms)),
    ...(yield* nameTables(documents)),
  }
}

function* nameTables(documents: readonly SearchDocument[]): Steps<Pick<SearchIndexData, 'names' | 'foldedNames' | 'foldedDocument'>> {
  const folded: { name: string; raw: string; d: number }[] = []
  for (const [d, { name }] of documents.entries()) {
    folded.push({ name: name.toWellFormed().toLowerCase(), raw: name, d })
    if (d % TERMS_PER_STEP === 0) yield
  }
  const sorted = yield* sortInSteps(folded, (a, b) => compareCodePoints(a.name, b.name) || compareCodePoints(a.raw, b.raw))
  const foldedDocument = new Uint32Array(sorted.length)
  for (const [i, { d }] of sorted.entries()) foldedDocument[i] = d
  yield
  return {
    names: yield* stringTable(documents.map((document) => document.name)),
    foldedNames: yield* stringTable(sorted.map((item) => item.name)),
    foldedDocument,
  }
}

interface Occurrences {
  readonly terms: Uint32Array
  readonly weights: Float32Array
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
  rank: Uint32Array,
): Steps<Pick<SearchIndexData, 'postingStart' | 'postingDocument' | 'postingImpact'>> {
  const postingStart = new Uint32Array(rank.length + 1)
  for (const { terms } of found) for (const id of terms) bump(postingStart, (rank[id] ?? 0) + 1)
  yield
  accumulate(postingStart)
  const next = postingStart.slice()
  const total = postingStart.at(-1) ?? 0
  const postingDocument = new Uint32Array(total)
  const postingImpact = new Float32Array(total)
  for (const [d, { terms, weights }] of found.entries()) {
    for (let i = 0; i < terms.length; i++) {
      const at = bump(next, rank[terms[i] ?? 0] ?? 0)
      const weight = weights[i] ?? 0
      postingDocument[at] = d
      postingImpact[at] = weight / (weight + SATURATION)
    }
    if (d % TERMS_PER_STEP === 0) yield
  }
  return { postingStart, postingDocument, postingImpact }
}

function* pairLists(terms: readonly string[]): Steps<Pick<SearchIndexData, 'pairStart' | 'pairTerm'>> {
  const pairStart = new Uint32Array(PAIR_BUCKETS + 1)
  for (const [t, term] of terms.entries()) {
    for (const bucket of pairsOf(term)) bump(pairStart, bucket + 1)
    if (t % TERMS_PER_STEP === 0) yield
  }
  accumulate(pairStart)
  const next = pairStart.slice()
  const pairTerm = new Uint32Array(pairStart.at(-1) ?? 0)
  for (const [t, term] of terms.entries()) {
    for (const bucket of pairsOf(term)) pairTerm[bump(next, bucket)] = t
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
