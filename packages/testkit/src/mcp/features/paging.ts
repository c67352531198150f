import { INVALID_PARAMS, type JsonObject, RpcError } from '../wire/json-rpc.ts'

/** One page of a list. Cursors are opaque to the client; a bad one is -32602. */
export function page(key: string, items: readonly JsonObject[], params: JsonObject, size: number | undefined): JsonObject {
  const start = offsetOf(params['cursor'], items.length)
  if (size === undefined) return { [key]: items.slice(start) }
  const end = start + size
  return { [key]: items.slice(start, end), ...(end < items.length ? { nextCursor: cursorFor(end) } : {}) }
}

function cursorFor(offset: number): string {
  return Buffer.from(`offset:${offset}`).toString('base64url')
}

function offsetOf(cursor: unknown, length: number): number {
  if (cursor === undefined) return 0
  const text = typeof cursor === 'string' ? Buffer.from(cursor, 'base64url').toString('utf8') : ''
  const offset = Number(/^offset:(\d+)$/.exec(text)?.[1])
  if (!Number.isSafeInteger(offset) || offset > length) throw new RpcError(INVALID_PARAMS, 'Unknown cursor')
  return offset
}
