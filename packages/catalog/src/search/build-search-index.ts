import { type Steps, sortInSteps } from '@thv/kernel/steps'
import { stringTable } from '../snapshot/string-table.ts'
import { compareCodePoints } from '../text.ts'
import { EXACT } from './search-filters.ts'
import { PAIR_BUCKETS, pairsOf, type SearchIndexData } from './search-index-data.ts'
import type { Occurrences, SearchTerms } from './search-terms.ts'

export interface FoundWords {
  /** Of the documents, by code point. */
  readonly names: readonly string[]
  readonly occurrences: readonly Occurrences[]
  readonly terms: SearchTerms
}

/** At this sum of weights the impact is one half: a second mention counts less than the first. */
const SATURATION = 4
const TERMS_PER_STEP = 2048

/** The index of documents whose words are known. Equal scores are given in the documents' order. */
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
    // Most catalogs are in lower case and come sorted.
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
