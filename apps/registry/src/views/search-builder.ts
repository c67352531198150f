import { occurrenceSteps } from '@thv/catalog/search/build-search-index'
import { searchDocumentOf } from '@thv/catalog/search/search-document'
import type { SearchIndexData } from '@thv/catalog/search/search-index-data'
import { createSearchTerms, type Occurrences, type SearchTerms } from '@thv/catalog/search/search-terms'
import type { Steps } from '@thv/kernel/steps'
import { documentOf } from './catalog-row.ts'
import type { LatestRow } from './kept-view.ts'

/** Indexes for all views; each document is read once, however many views show it and however often they are built. */
export interface SearchBuilder {
  /** `view`: whose index it is. */
  build(view: object, latest: readonly LatestRow[]): Steps<SearchIndexData>
  /** As `build`, unless the last one of the view finds the same. */
  update(view: object, latest: readonly LatestRow[]): Steps<SearchIndexData | 'same'>
  /** The view is no more. */
  release(view: object): void
}

const PER_STEP = 128
/** Words of documents that are gone are forgotten, with all others, when there are more than this for each one in use. */
const MAX_PER_USED = 2
const FEW_TERMS = 100_000

/** `fewTerms`: up to so many words none are forgotten. */
export function createSearchBuilder({ fewTerms = FEW_TERMS } = {}): SearchBuilder {
  let known = newTerms()
  const used = new Map<object, number>()
  const last = new Map<object, Built>()

  /** A build keeps to the terms it began with. */
  function* read(latest: readonly LatestRow[]): Steps<Built> {
    const { terms, mark } = known
    const names: string[] = []
    const found: Uint32Array[] = []
    for (let i = 0; i < latest.length; i++) {
      const { name, row } = latest[i] as LatestRow
      let packed = row.wordsOf === mark ? row.words : undefined
      if (!packed) {
        packed = pack(terms.occurrences(searchDocumentOf({ name, document: documentOf(row), status: row.status })))
        row.words = packed
        row.wordsOf = mark
        if (i % PER_STEP === 0) yield
      }
      names.push(name)
      found.push(packed)
      if (i % (PER_STEP * 16) === 0) yield
    }
    return { terms, names, found }
  }

  function* indexOf(view: object, built: Built): Steps<SearchIndexData> {
    const { terms, names, found } = built
    const index = yield* occurrenceSteps({ names, occurrences: found.map(unpack), terms })
    used.set(view, index.terms.offsets.length - 1)
    // Another view may have begun a new list meanwhile.
    if (terms !== known.terms) return index
    last.set(view, built)
    const inUse = [...used.values()].reduce((sum, count) => sum + count, 0)
    if (terms.size > fewTerms && terms.size > inUse * MAX_PER_USED) {
      known = newTerms()
      last.clear()
    }
    return index
  }

  return {
    *build(view, latest) {
      return yield* indexOf(view, yield* read(latest))
    },
    *update(view, latest) {
      const built = yield* read(latest)
      const before = last.get(view)
      return before !== undefined && isSame(before, built) ? 'same' : yield* indexOf(view, built)
    },
    release(view) {
      used.delete(view)
      last.delete(view)
    },
  }
}

function newTerms(): { readonly terms: SearchTerms; readonly mark: symbol } {
  return { terms: createSearchTerms(), mark: Symbol('terms') }
}

/** The names and words that an index was built from. */
interface Built {
  readonly terms: SearchTerms
  readonly names: readonly string[]
  readonly found: readonly Uint32Array[]
}

function isSame(a: Built, b: Built): boolean {
  if (a.terms !== b.terms || a.names.length !== b.names.length) return false
  return b.names.every((name, i) => name === a.names[i] && isSameArray(a.found[i], b.found[i]))
}

function isSameArray(a: Uint32Array | undefined, b: Uint32Array | undefined): boolean {
  return a === b || (a?.length === b?.length && a?.every((value, i) => value === b?.[i]) === true)
}

/** One small array instead of two: there is one for each server. */
function pack({ terms, weights }: Occurrences): Uint32Array {
  const packed = new Uint32Array(terms.length * 2)
  packed.set(terms)
  new Float32Array(packed.buffer, terms.byteLength).set(weights)
  return packed
}

function unpack(packed: Uint32Array): Occurrences {
  const count = packed.length / 2
  return { terms: packed.subarray(0, count), weights: new Float32Array(packed.buffer, packed.byteOffset + count * 4, count) }
}
