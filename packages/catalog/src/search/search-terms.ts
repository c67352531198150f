import { type Steps, sortInSteps } from '@thv/kernel/steps'
import { compareCodePoints } from '../text.ts'
import type { SearchDocument } from './search-document.ts'
import { exactTermsOf } from './search-filters.ts'
import { splitCamelCase, wordsOf } from './search-text.ts'

/** Words that documents were found to have. They outlive an index, so that the next one reads only documents that are new. */
export interface SearchTerms {
  readonly size: number
  occurrences(document: SearchDocument): Occurrences
  get(id: number): string
  /** All ids, in the order of the words. */
  sorted(): Steps<Uint32Array>
}

/** How much each word says about one document: nothing, for what filters alone look up. */
export interface Occurrences {
  readonly terms: Uint32Array
  readonly weights: Float32Array
}

/** How much a word says, by where it stands. The namespace is shared by many servers, so it says little. */
const WEIGHTS = { name: 6, title: 5, tags: 4, tools: 3, description: 2, namespace: 0.6 }
const MAX_WORDS_PER_FIELD = 1024
const MAX_FIELD_LENGTH = 16_384
const TERMS_PER_STEP = 2048

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
