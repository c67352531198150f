import { readStringTable } from '../snapshot/string-table.ts'
import { editDistance } from './edit-distance.ts'
import { pairsOf, type SearchIndexData } from './search-index-data.ts'

/** A word of the index that a word of the query may mean, and how sure that is: 0..1. */
export interface Candidate {
  readonly term: number
  readonly sureness: number
}

/** Costs of one query so far; each has a limit, behind which the query goes on with what it has. */
export interface SearchWork {
  terms: number
  pairs: number
  distances: number
  postings: number
}

export const WORK_LIMITS: Readonly<SearchWork> = { terms: 8192, pairs: 300_000, distances: 2048, postings: 400_000 }

const MAX_PREFIXED = 64
const PREFIXED_LOOKED_AT = 1024
const DISTANCES_PER_WORD = 512
const LAST_CODE_POINT = '\u{10ffff}'

/** Not re-entrant: it keeps one counter per term between calls. */
export function createCandidateFinder(
  data: SearchIndexData,
  limits: Readonly<SearchWork>,
): (word: string, work: SearchWork) => Candidate[] {
  const terms = readStringTable(data.terms)
  const shared = new Uint8Array(terms.size)

  return (word, work) => {
    const exact = terms.find(word)
    const found = exact === -1 ? [] : [{ term: exact, sureness: 1 }]
    found.push(...prefixed(word, work))
    // A word that is known is meant: guessing beside it brings noise.
    return exact === -1 ? [...found, ...misspelt(word, work)] : found
  }

  function prefixed(word: string, work: SearchWork): Candidate[] {
    if (word.length < 2) return []
    const found: Candidate[] = []
    const bytes = Buffer.byteLength(word)
    const start = terms.lowerBound(word)
    const end = Math.min(terms.lowerBound(`${word}${LAST_CODE_POINT}`), start + PREFIXED_LOOKED_AT, start + limits.terms - work.terms)
    for (let t = start; t < end; t++) {
      work.terms++
      const length = terms.byteLength(t)
      if (length > bytes) found.push({ term: t, sureness: 0.4 + 0.5 * (bytes / length) })
    }
    return found.sort((a, b) => b.sureness - a.sureness).slice(0, MAX_PREFIXED)
  }

  function misspelt(word: string, work: SearchWork): Candidate[] {
    const edits = word.length < 4 ? 0 : word.length < 8 ? 1 : 2
    if (edits === 0) return []
    const found: Candidate[] = []
    for (const term of similar(word, edits, work)) {
      if (work.distances >= limits.distances) break
      work.distances++
      const text = terms.get(term)
      const distance = editDistance(word, text, edits)
      if (distance > edits) continue
      // People seldom miss the first letter.
      found.push({ term, sureness: (distance === 1 ? 0.7 : 0.45) * (text.charCodeAt(0) === word.charCodeAt(0) ? 1 : 0.8) })
    }
    return found
  }

  /** Terms that share enough pairs of letters: one edit, a swap at worst, spoils three of them. */
  function similar(word: string, edits: number, work: SearchWork): number[] {
    const buckets = [...pairsOf(word)].sort((a, b) => listLength(a) - listLength(b))
    const touched: number[] = []
    let unread = 0
    for (const bucket of buckets) {
      if (work.pairs + listLength(bucket) > limits.pairs) {
        unread++
        continue
      }
      work.pairs += listLength(bucket)
      for (let i = data.pairStart[bucket] ?? 0; i < (data.pairStart[bucket + 1] ?? 0); i++) {
        const term = data.pairTerm[i] ?? 0
        if (shared[term] === 0) touched.push(term)
        shared[term] = (shared[term] ?? 0) + 1
      }
    }
    const enough = Math.max(1, buckets.length - 3 * edits - unread)
    const likely = touched.filter((term) => (shared[term] ?? 0) >= enough)
    if (likely.length > DISTANCES_PER_WORD) likely.sort((a, b) => (shared[b] ?? 0) - (shared[a] ?? 0))
    for (const term of touched) shared[term] = 0
    return likely.slice(0, DISTANCES_PER_WORD)
  }

  function listLength(bucket: number): number {
    return (data.pairStart[bucket + 1] ?? 0) - (data.pairStart[bucket] ?? 0)
  }
}
