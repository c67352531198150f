import { readStringTable } from '../snapshot/string-table.ts'
import { compareCodePoints } from '../text.ts'
import type { SearchIndexData } from './search-index-data.ts'
import { wordsOf } from './search-text.ts'
import { type Candidate, createCandidateFinder, type SearchWork, WORK_LIMITS } from './term-candidates.ts'
import { createTopList } from './top-list.ts'

export interface SearchHit {
  /** The document's place in what the index was built from. */
  readonly document: number
  readonly name: string
  readonly score: number
}

export interface SearchOptions {
  /** 1..100, brought into this range; 10 when left out. */
  readonly limit?: number | undefined
  /** An exact filter beside the search. */
  readonly accept?: ((document: number) => boolean) | undefined
}

export interface SearchIndex {
  readonly count: number
  /** Best first. A name given exactly is always first, whatever else matches. Any query is answered within the limits of work. */
  search(query: string, options?: SearchOptions): { readonly hits: readonly SearchHit[]; readonly work: Readonly<SearchWork> }
}

export const MAX_HITS = 100
/** What is behind this is not looked at. Names are not longer. */
export const MAX_QUERY_LENGTH = 256
export const MAX_QUERY_WORDS = 12

const SAME_NAME = 1000
const SAME_NAME_BUT_CASE = 500

/** Not re-entrant, and need not be: a search never waits. */
export function openSearchIndex(data: SearchIndexData, limits: Readonly<SearchWork> = WORK_LIMITS): SearchIndex {
  const names = readStringTable(data.names)
  const foldedNames = readStringTable(data.foldedNames)
  const candidatesOf = createCandidateFinder(data, limits)
  const count = names.size
  const score = new Float32Array(count)
  const covered = new Float32Array(count)
  const best = new Float32Array(count)

  const frequency = (term: number) => (data.postingStart[term + 1] ?? 0) - (data.postingStart[term] ?? 0)
  const rarity = (term: number) => Math.log(1 + count / (1 + frequency(term)))

  function search(query: string, options: SearchOptions = {}): ReturnType<SearchIndex['search']> {
    const work: SearchWork = { terms: 0, pairs: 0, distances: 0, postings: 0 }
    const text = query.slice(0, MAX_QUERY_LENGTH).trim()
    const words = [...new Set(wordsOf(text, MAX_QUERY_WORDS))].map((word) => wordOf(candidatesOf(word, work)))
    // Common words last: if the work has to stop, it stops where least is lost.
    words.sort((a, b) => b.weight - a.weight)
    const touched: number[] = []
    for (const word of words) scoreWord(word, touched, work)

    const asked = words.reduce((sum, word) => sum + word.weight, 0)
    const top = createTopList(Math.min(Math.max(Math.trunc(options.limit ?? 10) || 1, 1), MAX_HITS))
    const named = sameName(text)
    for (const [document, bonus] of named) if (options.accept?.(document) ?? true) top.offer(document, bonus + (score[document] ?? 0))
    for (const document of touched) {
      const total = ((score[document] ?? 0) * (covered[document] ?? 0)) / asked
      score[document] = 0
      covered[document] = 0
      if (!named.has(document) && (options.accept?.(document) ?? true)) top.offer(document, total)
    }
    return { hits: top.take().map(({ id, score }) => ({ document: id, name: names.get(id), score })), work }
  }

  /** A word counts once per document, by its best meaning there. */
  function scoreWord(word: QueryWord, touched: number[], work: SearchWork): void {
    const reached: number[] = []
    for (const { term, sureness } of word.candidates) {
      const factor = sureness * Math.min(rarity(term), word.weight)
      const start = data.postingStart[term] ?? 0
      const end = Math.min(start + frequency(term), start + limits.postings - work.postings)
      work.postings += end - start
      for (let i = start; i < end; i++) {
        const document = data.postingDocument[i] ?? 0
        const value = factor * (data.postingImpact[i] ?? 0)
        if (best[document] === 0) reached.push(document)
        if (value > (best[document] ?? 0)) best[document] = value
      }
    }
    for (const document of reached) {
      if (covered[document] === 0) touched.push(document)
      score[document] = (score[document] ?? 0) + (best[document] ?? 0)
      covered[document] = (covered[document] ?? 0) + word.weight
      best[document] = 0
    }
  }

  /** The weight of a query word is its rarity: of the word itself if the index knows it, else of the rarest it may mean. */
  function wordOf(candidates: readonly Candidate[]): QueryWord {
    const known = candidates.find((candidate) => candidate.sureness === 1)
    const weights = (known ? [known] : candidates).map(({ term }) => rarity(term))
    return { candidates, weight: Math.max(UNKNOWN_WEIGHT, ...weights) }
  }

  /** Names that differ in case only are neighbours, in order of their own letters: the one meant is found among any number. */
  function sameName(text: string): Map<number, number> {
    const folded = text.toWellFormed().toLowerCase()
    const first = foldedNames.lowerBound(folded)
    const found = new Map<number, number>()
    let low = first
    let high = foldedNames.lowerBound(`${folded}\0`)
    for (let i = first; i < high && found.size < MAX_HITS; i++) found.set(data.foldedDocument[i] ?? 0, SAME_NAME_BUT_CASE)
    while (low < high) {
      const middle = (low + high) >>> 1
      const document = data.foldedDocument[middle] ?? 0
      const order = compareCodePoints(names.get(document), text)
      if (order === 0) return found.set(document, SAME_NAME)
      if (order < 0) low = middle + 1
      else high = middle
    }
    return found
  }

  return { count, search }
}

interface QueryWord {
  readonly candidates: readonly Candidate[]
  readonly weight: number
}

/** Above 0, so that "covered" tells a document that was reached from one that was not. */
const UNKNOWN_WEIGHT = 0.1
