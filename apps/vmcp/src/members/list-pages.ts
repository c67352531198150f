import { McpErrorResponse } from '@thv/mcp/client/client-errors'
import type { McpClient } from '@thv/mcp/client/mcp-client'
import { isObject, type JsonObject } from '@thv/mcp/json-rpc'
import { LIST_MEMBERS, METHODS } from '@thv/mcp/methods'

export interface ListLimits {
  readonly maxItems: number
  readonly maxBytes: number
  readonly maxPages: number
}

export const LIST_LIMITS: ListLimits = { maxItems: 10_000, maxBytes: 16 << 20, maxPages: 1_000 }

export interface ListedItems {
  readonly items: readonly JsonObject[]
  /** The list was longer than the limits; the rest is dropped. */
  readonly isCut: boolean
  /** The shortest time for which the server says that its pages may be kept; undefined where it says nothing of use (MCP 2026-07-28, caching). */
  readonly ttlMs: number | undefined
}

/** A backend is listed for a fifth of the time at most, whatever it asks for, because lists can be large. */
export const REST_FACTOR = 4
const MIN_TTL_MS = 1_000
const MAX_TTL_MS = 300_000

/** No server makes us list it without end, or miss its changes for long. */
export function boundedTtl(ttlMs: number): number {
  return Math.min(MAX_TTL_MS, Math.max(MIN_TTL_MS, ttlMs))
}

/** All pages of a list, as far as the limits go. A cursor that comes twice ends the list: it would never end by itself. */
export async function listAll(client: McpClient, method: string, signal: AbortSignal, limits = LIST_LIMITS): Promise<ListedItems> {
  const member = LIST_MEMBERS.get(method) ?? ''
  const items: JsonObject[] = []
  const seen = new Set<string>()
  let bytes = 0
  let ttlMs: number | undefined
  let cursor: string | undefined
  for (let page = 0; page < limits.maxPages; page++) {
    const result = await request(client, method, { signal, cursor })
    const ttl = result['ttlMs']
    if (typeof ttl === 'number' && ttl > 0 && ttl < (ttlMs ?? Number.POSITIVE_INFINITY)) ttlMs = ttl
    const found: readonly unknown[] = Array.isArray(result[member]) ? result[member] : []
    for (const item of found) {
      bytes += JSON.stringify(item)?.length ?? 0
      if (items.length >= limits.maxItems || bytes > limits.maxBytes) return { items, isCut: true, ttlMs }
      items.push(isObject(item) ? item : {})
    }
    cursor = typeof result['nextCursor'] === 'string' ? result['nextCursor'] : undefined
    if (cursor === undefined) return { items, isCut: false, ttlMs }
    if (seen.has(cursor)) return { items, isCut: true, ttlMs }
    seen.add(cursor)
  }
  return { items, isCut: true, ttlMs }
}

/** Servers that announce resources often have no templates, and say so with an error. */
async function request(client: McpClient, method: string, { signal, cursor }: { signal: AbortSignal; cursor: string | undefined }) {
  try {
    return await client.request(method, cursor === undefined ? {} : { cursor }, { signal })
  } catch (error) {
    if (method === METHODS.resourceTemplatesList && error instanceof McpErrorResponse && error.rpcCode === -32601) return {}
    throw error
  }
}
