import type { RequestId } from './json-rpc.ts'
import { valueEnd } from './json-scan.ts'

const ID_FIRST = '{"jsonrpc":"2.0","id":'
const THEN_RESULT = ',"result":{'
const RESULT_FIRST = '{"result":{'
const THEN_ID = '},"jsonrpc":"2.0","id":'

/**
 * The response `text` to the request `from` as the response to the request `to`, if it is a result in one of the two orders in which nearly all
 * servers write their members. It has no other members: a second id would make it the answer to another request, maybe to one that another server
 * answers. Undefined: it has to be read to know what it is.
 */
export function plainResultFor(to: RequestId, { text, from }: { readonly text: string; readonly from: RequestId }): string | undefined {
  const id = idText(from)
  if (text.startsWith(ID_FIRST)) {
    const after = ID_FIRST.length + id.length
    if (!text.startsWith(id, ID_FIRST.length) || !text.startsWith(THEN_RESULT, after) || !text.endsWith('}}')) return undefined
    if (valueEnd(text, after + THEN_RESULT.length - 1) !== text.length - 1) return undefined
    return ID_FIRST + idText(to) + text.slice(after)
  }
  const tail = `${THEN_ID}${id}}`
  if (!text.startsWith(RESULT_FIRST) || !text.endsWith(tail)) return undefined
  if (valueEnd(text, RESULT_FIRST.length - 1) !== text.length - tail.length + 1) return undefined
  return `${text.slice(0, text.length - id.length - 1)}${idText(to)}}`
}

function idText(id: RequestId): string {
  return typeof id === 'number' ? String(id) : JSON.stringify(id)
}
