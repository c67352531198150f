import type { JsonObject } from '@thv/mcp/json-rpc'
import { byCodePoint } from '../aggregate/backend-lists.ts'

/** One list of the virtual server as text, ready to be sent in pages. */
export interface ListText {
  readonly keys: readonly string[]
  readonly items: readonly string[]
}

export interface ListPage {
  /** JSON of the items, without brackets. */
  readonly text: string
  readonly nextCursor: string | undefined
}

export const PAGE_SIZE = 1_000
const MAX_CURSOR = 8_192

/** Whatever has an item in a list. */
export interface Listed {
  readonly item: JsonObject
}

export function listText(routes: ReadonlyMap<string, Listed>): ListText {
  const keys: string[] = []
  const items: string[] = []
  for (const [key, { item }] of routes) {
    keys.push(key)
    items.push(textOf(item))
  }
  return { keys, items }
}

/** By the item: most of them stay when a list changes. */
const texts = new WeakMap<JsonObject, string>()

function textOf(item: JsonObject): string {
  const before = texts.get(item)
  if (before !== undefined) return before
  const text = JSON.stringify(item)
  texts.set(item, text)
  return text
}

export function isSameList(a: ListText, b: ListText): boolean {
  return a.items.length === b.items.length && a.items.every((item, i) => item === b.items[i])
}

/** Where the page after a cursor begins; undefined for a cursor that is none of ours. It names the last item, so a list may change between two pages. */
export function pageStart({ keys }: ListText, cursor: unknown): number | undefined {
  if (cursor === undefined) return 0
  const last = readCursor(cursor)
  return last === undefined ? undefined : firstAfter(keys, last)
}

export function pageAt({ keys, items }: ListText, start: number): ListPage {
  const end = Math.min(items.length, start + PAGE_SIZE)
  const lastKey = keys[end - 1]
  const nextCursor = end < items.length && lastKey !== undefined ? writeCursor(lastKey) : undefined
  return { text: items.slice(start, end).join(','), nextCursor }
}

function firstAfter(keys: readonly string[], last: string): number {
  let low = 0
  let high = keys.length
  while (low < high) {
    const middle = (low + high) >> 1
    if (byCodePoint(keys[middle] ?? '', last) <= 0) low = middle + 1
    else high = middle
  }
  return low
}

function writeCursor(last: string): string {
  return Buffer.from(JSON.stringify({ after: last })).toString('base64url')
}

function readCursor(cursor: unknown): string | undefined {
  if (typeof cursor !== 'string' || cursor.length > MAX_CURSOR) return undefined
  try {
    const value: unknown = JSON.parse(Buffer.from(cursor, 'base64url').toString('utf8'))
    const after = typeof value === 'object' && value !== null && 'after' in value ? value.after : undefined
    return typeof after === 'string' ? after : undefined
  } catch {
    return undefined // the client gets invalid params
  }
}
