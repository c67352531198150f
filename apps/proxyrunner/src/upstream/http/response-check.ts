import type { RequestId } from '@thv/mcp/json-rpc'
import { parseText } from '@thv/mcp/parse-body'

/** `ours`: a response to the request; `foreign`: a response to something else; `other`: no response at all. */
export type ResponseKind = 'ours' | 'foreign' | 'other'

/**
 * Whether a message of the backend answers the request with this id. The two orders in which nearly all servers write their members
 * are told by the ends of the text; all others cost a parse.
 */
export function responseKind(text: string, id: RequestId): ResponseKind {
  const idText = JSON.stringify(id)
  if (text.startsWith(`{"jsonrpc":"2.0","id":${idText},"result":`) && text.endsWith('}')) return 'ours'
  if (text.startsWith('{"result":') && text.endsWith(`,"jsonrpc":"2.0","id":${idText}}`)) return 'ours'
  const parsed = parseText(text)
  if (parsed.kind !== 'response') return 'other'
  return parsed.id === id ? 'ours' : 'foreign'
}

const RESULT = Buffer.from('"result"')
const ERROR = Buffer.from('"error"')
const METHOD = Buffer.from('"method"')
const ID = Buffer.from('"id"')

/** Cheap and too generous: whether one of the events in these bytes can be a response. */
export function mayHoldResponse(frames: Buffer): boolean {
  return frames.includes(RESULT) || frames.includes(ERROR)
}

/** Cheap and too generous: whether one of them can be a question to the client. */
export function mayHoldRequest(frames: Buffer): boolean {
  return frames.includes(METHOD) && frames.includes(ID)
}
