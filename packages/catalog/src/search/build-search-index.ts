import { runAtOnce, runInTurns, type Steps, sortInSteps, type TurnOptions } from '../snapshot/steps.ts'
import { stringTable } from '../snapshot/string-table.ts'
import { compareCodePoints } from '../text.ts'
import type { SearchDocument } from './search-document.ts'
import { PAIR_BUCKETS, pairsOf, type SearchIndexData } from './search-index-data.ts'
import { splitCamelCase, wordsOf } from './search-text.ts'

/** One document per server; equal scores are given in the documents' order, so give them in the order of names. */
export function buildSearchIndex(documents: readonly SearchDocument[]): SearchIndexData {
  return runAtOnce(indexSteps(documents))
}

/** The same, letting the event loop turn between pieces of a few milliseconds. */
export function buildSearchIndexInTurns(documents: readonly SearchDocument[], options: TurnOptions): Promise<SearchIndexData> {
  return runInTurns(indexSteps(documents), options)
}

/** How much a word says, by where it stands. The namespace is shared by many servers, so it says little. */
const WEIGHTS = { name: 6, title: 5, tags: 4, tools: 3, description: 2, namespace: 0.6 }
/** At this sum of weights the impact is one half: a second mention counts less than the first. */
const SATURATION = 4
const MAX_WORDS_PER_FIELD = 1024
const MAX_FIELD_LENGTH = 16_384
const ITEMS_PER_STEP = 128
const TERMS_PER_STEP = 2048

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
  for (const [r, term] of terms.entries()) rank[ids.get(term) ?? 0] = r
  yield
  const postings = yield* postingsOf(found, rank)
  const pairs = yield* pairLists(terms)
  const folded = documents.map((document, d) => ({ name: document.name.toWellFormed().toLowerCase(), raw: document.name, d }))
  const sorted = yield* sortInSteps(folded, (a, b) => compareCodePoints(a.name, b.name) || compareCodePoints(a.raw, b.raw))
  return {
    names: stringTable(documents.map((document) => document.name)),
    foldedNames: stringTable(sorted.map((item) => item.name)),
    foldedDocument: Uint32Array.from(sorted, (item) => item.d),
    terms: stringTable(terms),
    ...postings,
    ...pairs,
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
