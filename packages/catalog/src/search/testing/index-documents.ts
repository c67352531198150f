import { runAtOnce, type Steps } from '@thv/kernel/steps'
import { occurrenceSteps } from '../build-search-index.ts'
import type { SearchDocument } from '../search-document.ts'
import type { SearchIndexData } from '../search-index-data.ts'
import { createSearchTerms } from '../search-terms.ts'

export function indexDocuments(documents: readonly SearchDocument[]): SearchIndexData {
  return runAtOnce(indexSteps(documents))
}

export function indexSteps(documents: readonly SearchDocument[]): Steps<SearchIndexData> {
  const terms = createSearchTerms()
  const occurrences = documents.map((document) => terms.occurrences(document))
  return occurrenceSteps({ names: documents.map(({ name }) => name), occurrences, terms })
}
