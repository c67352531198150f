import { ThvError } from '@thv/kernel/errors'
import type { JsonObject } from '../json-rpc.ts'
import { LIST_MEMBERS } from '../methods.ts'
import { protocolError } from './client-errors.ts'
import type { ClientLimits } from './client-limits.ts'

export interface PageSource {
  readonly method: string
  readonly params: JsonObject
  readonly limits: Pick<ClientLimits, 'maxPages' | 'maxItems'>
  request(params: JsonObject): Promise<JsonObject>
}

/** The items of all pages. Cursors are opaque, and the empty one is a cursor too; one that comes twice would never end. */
export async function allPages({ method, params, limits, request }: PageSource): Promise<JsonObject[]> {
  const member = LIST_MEMBERS.get(method)
  if (member === undefined) throw new RangeError(`${method} is no list`)
  const items: JsonObject[] = []
  const seen = new Set<string>()
  let cursor: string | undefined
  do {
    const page = await request(cursor === undefined ? params : { ...params, cursor })
    const found = page[member]
    if (!Array.isArray(found)) throw protocolError(`answered ${method} without ${member}`)
    for (const item of found) items.push(item)
    cursor = typeof page['nextCursor'] === 'string' ? page['nextCursor'] : undefined
    if (cursor !== undefined && seen.has(cursor)) throw protocolError(`sent the same cursor of ${method} twice`)
    if (cursor !== undefined) seen.add(cursor)
    if (cursor !== undefined && (seen.size >= limits.maxPages || items.length >= limits.maxItems))
      throw new ThvError('mcp_limit', `${method} has more than ${limits.maxPages} pages or ${limits.maxItems} items`)
  } while (cursor !== undefined)
  return items
}
