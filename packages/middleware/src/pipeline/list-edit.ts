import { isObject, type JsonObject } from '@thv/mcp/json-rpc'
import { skipSpace, valueEnd } from '@thv/mcp/json-scan'
import { findMember, spliceMember } from '@thv/mcp/json-splice'

/** The same object stays, another one takes its place, undefined hides it. */
export type ItemEdit = (item: JsonObject) => JsonObject | undefined

/**
 * Edits the items of one list in the text of a JSON-RPC response. All else keeps its letters: the other members of the response and
 * of the result, the items that stay, and the members of an item that the edit did not touch. An item that is not an object cannot
 * be judged and goes. The same text comes back when the response has no such list, or when nothing changed.
 */
export function editItems(text: string, member: string, edit: ItemEdit): string {
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
    const edited = isObject(item) ? edit(item) : undefined
    if (edited === item) kept.push(text.slice(at, end))
    else {
      changed = true
      if (edited !== undefined) kept.push(respell(text.slice(at, end), item, edited))
    }
    at = skipSpace(text, skipSpace(text, end) + 1) // over the comma
  }
  return changed ? `${text.slice(0, list.start)}[${kept.join(',')}]${text.slice(list.end)}` : text
}

function respell(text: string, before: JsonObject, after: JsonObject): string {
  let spelled = text
  for (const name of new Set([...Object.keys(before), ...Object.keys(after)])) {
    if (before[name] !== after[name]) spelled = spliceMember(spelled, [name], JSON.stringify(after[name]))
  }
  return spelled
}
