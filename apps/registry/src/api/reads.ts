import { givenFilters, type SearchFilters } from '@thv/catalog/search/search-filters'
import { MAX_HITS, MAX_QUERY_LENGTH } from '@thv/catalog/search/search-index'
import { isProblem } from '@thv/catalog/snapshot/list-query'
import type { Page } from '@thv/catalog/snapshot/page'
import type { Static } from 'typebox'
import type { ServedView } from '../engine/engine.ts'
import { ApiError, unavailable } from './http/api-error.ts'
import type { ApiRequest } from './http/route.ts'
import { DEFAULT_HITS, type listQuery, type searchQuery, type versionQuery } from './http/schemas.ts'
import { viewOf } from './http/visible-view.ts'

/** Every entry of a registry, page by page. */
export function listServers(request: ApiRequest<Static<typeof listQuery>>): void | Promise<void> {
  return withView(request, (view) => {
    return request.api.pages.list(request, view, () => {
      const { query } = request
      const page = view.snapshot.list({
        cursor: query.cursor,
        limit: query.limit,
        search: query.search,
        updatedSince: query.updated_since,
        version: query.version,
        includeDeleted: query.include_deleted,
      })
      if (isProblem(page)) throw new ApiError(400, page.message)
      return page
    })
  })
}

export function listVersions(request: ApiRequest<Static<typeof versionQuery>>): void | Promise<void> {
  return withView(request, (view) => {
    const page = view.snapshot.versions(request.params.serverName, { includeDeleted: request.query.include_deleted })
    if (page === undefined) throw new ApiError(404, 'server not found')
    return request.api.pages.page(request, view, page)
  })
}

export function getVersion(request: ApiRequest<Static<typeof versionQuery>>): void | Promise<void> {
  return withView(request, (view) => {
    const { serverName, version } = request.params
    const entry = view.snapshot.version(serverName, version, { includeDeleted: request.query.include_deleted })
    if (entry === undefined) throw new ApiError(404, 'server version not found')
    return request.api.pages.entry(request, view, entry)
  })
}

const COMMA = Buffer.from(',')

/** Best first, one answer without pages: what is further down is asked for with better words, or more filters. */
export function searchServers(request: ApiRequest<Static<typeof searchQuery>>): void | Promise<void> {
  return withView(request, (view) => {
    const { q = '', limit = DEFAULT_HITS } = request.query
    const filters = filtersOf(request.query)
    if (q.trim() === '' && givenFilters(filters).length === 0)
      throw new ApiError(400, 'q is required, the words to search for, unless there is a filter')
    if (q.length > MAX_QUERY_LENGTH) throw new ApiError(400, `q must not be longer than ${MAX_QUERY_LENGTH} characters`)
    if (limit < 1 || limit > MAX_HITS) throw new ApiError(400, `limit must be an integer from 1 to ${MAX_HITS}`)
    const answer = (searchable: ServedView) => {
      if (searchable.search === undefined) throw unavailable('the search index is not built yet')
      const entries: Uint8Array[] = []
      for (const hit of searchable.search.search(q, { limit, filters }).hits) {
        const entry = searchable.snapshot.version(hit.name, 'latest')
        if (entry !== undefined) entries.push(entry)
      }
      return request.api.pages.found(request, searchable, pageOfEntries(entries))
    }
    return view.search === undefined && request.caller.gated ? searchableView(request).then(answer) : answer(view)
  })
}

function filtersOf({ tag, registry_type, transport, status, tool }: Static<typeof searchQuery>): SearchFilters {
  return { tag, registryType: registry_type, transport, status, tool }
}

const SEARCHABLE_WITHIN_MS = 5_000
const LOOK_AGAIN_MS = 20

/** A view for claims is built at the first request, and its index comes a moment after its lists. */
async function searchableView(request: ApiRequest): Promise<ServedView> {
  const { clock } = request.api
  const deadline = clock.monotonic() + SEARCHABLE_WITHIN_MS
  for (;;) {
    const view = await viewOf(request)
    if (view.search !== undefined || clock.monotonic() >= deadline) return view
    await clock.sleep(LOOK_AGAIN_MS, request.exchange.signal)
  }
}

function pageOfEntries(entries: readonly Uint8Array[]): Page {
  const slices = entries.flatMap((entry, i) => (i === 0 ? [entry] : [COMMA, entry]))
  return { slices, bytes: slices.reduce((sum, slice) => sum + slice.length, 0), count: entries.length }
}

function withView(request: ApiRequest, then: (view: ServedView) => void | Promise<void>): void | Promise<void> {
  const view = viewOf(request)
  return view instanceof Promise ? view.then(then) : then(view)
}
