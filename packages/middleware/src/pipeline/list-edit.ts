import { isObject, type JsonObject } from '@thv/mcp/json-rpc'
import { skipSpace, valueEnd } from '@thv/mcp/json-scan'
import { findMember, spliceMember } from '@thv/mcp/json-splice'
import type { RequestContext } from './request-context.ts'

export interface ListEditor {
  /** The member of the result that holds the items. */
  readonly member: string
  /** The list is the caller's alone. */
  readonly isPerCaller: boolean
  /** Returns the same object to keep the item, another one to replace it, undefined to hide it. */
  readonly edit: (context: RequestContext, item: JsonObject) => JsonObject | undefined
}

/**
 * Edits the items of one list in the text of a JSON-RPC response. Everything else keeps its letters: the other members of the response
 * and of the result, the items that stay, and the members of an item that the edit did not touch. An item that is not an object is
 * removed, because no middleware can judge it. Returns the same text when the response has no such list or nothing changed. A list that
 * is the caller's alone is not marked as public to caches, changed or not.
 */
export function editItems(text: string, { member, isPerCaller, edit }: ListEditor, context: RequestContext): string {
  const message: unknown = JSON.parse(text)
  const result = isObject(message) ? message['result'] : undefined
  const items = isObject(result) ? result[member] : undefined
  if (!Array.isArray(items)) return text
  const list = findMember(text, ['result', member])
  if (list === undefined) return text

  let changed = false
  const kept: string[] = []
  let at = skipSpace(text, list.start + 1)
  for (const item of items) {
    const end = valueEnd(text, at)
    const edited = isObject(item) ? edit(context, item) : undefined
    if (edited === item) kept.push(text.slice(at, end))
    else {
      changed = true
      if (edited !== undefined) kept.push(respell(text.slice(at, end), item, edited))
    }
    at = skipSpace(text, skipSpace(text, end) + 1) // over the comma
  }
  const edited = changed ? `${text.slice(0, list.start)}[${kept.join(',')}]${text.slice(list.end)}` : text
  return isPerCaller && isObject(result) && isShareable(result) ? spliceMember(edited, ['result', 'cacheScope'], '"private"') : edited
}

/** A cacheable result of the modern era that does not say that it is private. */
function isShareable({ cacheScope, ttlMs }: JsonObject): boolean {
  return cacheScope === undefined ? ttlMs !== undefined : cacheScope !== 'private'
}

function respell(text: string, before: JsonObject, after: JsonObject): string {
  let spelled = text
  for (const name of new Set([...Object.keys(before), ...Object.keys(after)])) {
    if (before[name] !== after[name]) spelled = spliceMember(spelled, [name], JSON.stringify(after[name]))
  }
  return spelled
}
