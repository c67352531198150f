import { readStringTable } from '../snapshot/string-table.ts'
import { compareCodePoints } from '../text.ts'
import { exactTerm, FIRST_WORD, givenFilters, type SearchFilters } from './search-filters.ts'
import type { SearchIndexData } from './search-index-data.ts'
import { wordsOf } from './search-text.ts'
import { type Candidate, createCandidateFinder, type SearchWork, WORK_LIMITS } from './term-candidates.ts'
import { createTopList } from './top-list.ts'

export interface SearchHit {
  /** The document's place in what the index was built from. */
  readonly document: number
  readonly name: string
  /** 0 where filters alone found it. */
  readonly score: number
}

export interface SearchOptions {
  /** 1..100, brought into this range; 10 when left out. */
  readonly limit?: number | undefined
  /** Exact, beside the words. At most MAX_FILTER_VALUES of each kind. */
  readonly filters?: SearchFilters | undefined
  /** Documents that are left out, so that a further search gives the next ones. */
  readonly exclude?: ReadonlySet<number> | undefined
}

export interface SearchIndex {
  readonly count: number
  /**
   * Best first. A name given exactly is always first, whatever else matches. Any query is answered within the limits of work. Filters
   * without a query give all that pass, in the documents' order.
   */
  search(query: string, options?: SearchOptions): { readonly hits: readonly SearchHit[]; readonly work: Readonly<SearchWork> }
}

export const MAX_HITS = 100
/** Text behind this is ignored. Names are not longer. */
export const MAX_QUERY_LENGTH = 256
const MAX_QUERY_WORDS = 12

const SAME_NAME = 1000
const SAME_NAME_BUT_CASE = 500

/** Not re-entrant, and need not be: a search never waits. */
export function openSearchIndex(data: SearchIndexData, limits: Readonly<SearchWork> = WORK_LIMITS): SearchIndex {
  const names = readStringTable(data.names)
  const foldedNames = readStringTable(data.foldedNames)
  const terms = readStringTable(data.terms)
  const impactFrom = data.postingStart[terms.lowerBound(FIRST_WORD)] ?? 0
  const candidatesOf = createCandidateFinder(data, limits)
  const count = names.size
  const score = new Float32Array(count)
  const covered = new Float32Array(count)
  const best = new Float32Array(count)
  const passed = new Uint8Array(count)

  const frequency = (term: number) => (data.postingStart[term + 1] ?? 0) - (data.postingStart[term] ?? 0)
  const rarity = (term: number) => Math.log(1 + count / (1 + frequency(term)))

  function search(query: string, options: SearchOptions = {}): ReturnType<SearchIndex['search']> {
    const work: SearchWork = { terms: 0, pairs: 0, distances: 0, postings: 0 }
    const limit = Math.min(Math.max(Math.trunc(options.limit ?? 10) || 1, 1), MAX_HITS)
    const text = query.slice(0, MAX_QUERY_LENGTH).trim()
    const asked = applyFilters(options.filters)
    if (text === '' && asked > 0) return { hits: firstPassed(asked, limit, options.exclude), work }
    const words = [...new Set(wordsOf(text, MAX_QUERY_WORDS))].map((word) => wordOf(candidatesOf(word, work)))
    // Common words last: if the work has to stop, it stops where least is lost.
    words.sort((a, b) => b.weight - a.weight)
    const touched: number[] = []
    for (const word of words) scoreWord(word, touched, work)

    const weight = words.reduce((sum, word) => sum + word.weight, 0)
    const top = createTopList(limit)
    const named = sameName(text)
    const { exclude } = options
    const passes = (document: number) => (asked === 0 || passed[document] === asked) && exclude?.has(document) !== true
    for (const [document, bonus] of named) if (passes(document)) top.offer(document, bonus + (score[document] ?? 0))
    for (const document of touched) {
      const total = ((score[document] ?? 0) * (covered[document] ?? 0)) / weight
      score[document] = 0
      covered[document] = 0
      if (!named.has(document) && passes(document)) top.offer(document, total)
    }
    return { hits: top.take().map(({ id, score }) => ({ document: id, name: names.get(id), score })), work }
  }

  /** How many filters there are; afterwards `passed` is that number for the documents that pass all of them. */
  function applyFilters(filters: SearchFilters | undefined): number {
    const given = givenFilters(filters)
    if (given.length > 0) passed.fill(0)
    let left = count
    for (const [before, [kind, values]] of given.entries()) {
      let passing = 0
      for (const value of values) {
        // Those that an earlier filter left over have all passed.
        if (passing === left) break
        const term = terms.find(exactTerm(kind, value))
        if (term >= 0) passing += passOn(term, before)
      }
      left = passing
    }
    return given.length
  }

  /** How many documents of the term had passed so many filters before, and now pass one more. */
  function passOn(term: number, before: number): number {
    const end = data.postingStart[term + 1] ?? 0
    let passing = 0
    for (let i = data.postingStart[term] ?? 0; i < end; i++) {
      const document = data.postingDocument[i] ?? 0
      if (passed[document] !== before) continue
      passed[document] = before + 1
      passing++
    }
    return passing
  }

  function firstPassed(asked: number, limit: number, exclude: SearchOptions['exclude']): SearchHit[] {
    const hits: SearchHit[] = []
    for (let document = 0; document < count && hits.length < limit; document++)
      if (passed[document] === asked && exclude?.has(document) !== true) hits.push({ document, name: names.get(document), score: 0 })
    return hits
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
        const value = factor * (data.postingImpact[i - impactFrom] ?? 0)
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
