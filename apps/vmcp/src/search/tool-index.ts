import { setImmediate } from 'node:timers/promises'
import { occurrenceSteps } from '@thv/catalog/search/build-search-index'
import type { SearchDocument } from '@thv/catalog/search/search-document'
import { openSearchIndex, type SearchIndex } from '@thv/catalog/search/search-index'
import { searchIndexTransferList } from '@thv/catalog/search/search-index-data'
import { createSearchTerms, type Occurrences } from '@thv/catalog/search/search-terms'
import { splitCamelCase } from '@thv/catalog/search/search-text'
import { runInTurns } from '@thv/kernel/steps'
import { isObject, type JsonObject } from '@thv/mcp/json-rpc'
import { type Route, sortedByKey } from '../aggregate/aggregate.ts'
import type { BuiltView } from '../view/built-view.ts'

/** The tools of one view, for search. */
export interface ToolIndex {
  /** By document. */
  readonly items: readonly JsonObject[]
  /** Characters of the JSON of all items. */
  readonly size: number
  /** Bytes that the index takes beside the items. */
  readonly bytes: number
  readonly search: SearchIndex['search']
}

type Found = Pick<Route, 'item'> & Partial<Pick<Route, 'backend' | 'original' | 'selector'>>

const DOCUMENTS_PER_TURN = 128
/** Of one document while it is searched. */
const SCORES_BYTES = 13

/** All tools that clients may call, composite ones too. Takes turns with other work. */
export async function buildToolIndex({ view, composites }: Pick<BuiltView, 'view' | 'composites'>): Promise<ToolIndex> {
  const tools = sortedByKey(new Map<string, Found>([...view.tools, ...composites.offered]))
  const terms = createSearchTerms()
  const occurrences: Occurrences[] = []
  const items: JsonObject[] = []
  let size = 0
  for (const [name, tool] of tools) {
    items.push(tool.item)
    size += JSON.stringify(tool.item).length
    occurrences.push(terms.occurrences(documentOf(name, tool)))
    if (items.length % DOCUMENTS_PER_TURN === 0) await setImmediate()
  }
  const steps = occurrenceSteps({ names: [...tools.keys()], occurrences, terms })
  const data = await runInTurns(steps, { pause: () => setImmediate() })
  const bytes = searchIndexTransferList(data).reduce((sum, { byteLength }) => sum + byteLength, items.length * SCORES_BYTES)
  return { items, size, bytes, search: openSearchIndex(data).search }
}

/** Names say most, then titles; the backend and the names of arguments help where descriptions are short. */
function documentOf(name: string, { item, backend, original, selector }: Found): SearchDocument {
  const { title, description, annotations, inputSchema } = item
  const hinted = isObject(annotations) ? annotations['title'] : undefined
  const properties = isObject(inputSchema) && isObject(inputSchema['properties']) ? Object.keys(inputSchema['properties']) : []
  return {
    name: splitCamelCase(name),
    title: typeof title === 'string' ? title : typeof hinted === 'string' ? hinted : '',
    description: `${typeof description === 'string' ? description : ''} ${splitCamelCase(properties.join(' '))}`,
    tags: selector !== undefined ? [...selector.backends.keys()] : backend === undefined ? [] : [backend],
    tools: original === undefined ? [] : [original],
    registryTypes: [],
    transports: [],
    status: 'active',
  }
}
