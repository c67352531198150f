import type { RequestId } from '@thv/mcp/json-rpc'
import { parseText } from '@thv/mcp/parse-body'

/** `ours`: a response to the request; `foreign`: a response to something else; `other`: no response at all. */
export type ResponseKind = 'ours' | 'foreign' | 'other'

/**
 * Whether a message of the backend answers the request with this id. The two orders in which nearly all servers write their members
 * are recognized by the ends of the text; all others cost a parse.
 */
export function responseKind(text: string, id: RequestId): ResponseKind {
  const idText = JSON.stringify(id)
  if (
    text.startsWith(ID_FIRST) &&
    text.startsWith(idText, ID_FIRST.length) &&
    text.startsWith(THEN_RESULT, ID_FIRST.length + idText.length)
  ) {
    if (text.endsWith('}')) return 'ours'
  } else if (text.startsWith(RESULT_FIRST) && text.endsWith(`${THEN_ID}${idText}}`)) return 'ours'
  const parsed = parseText(text)
  if (parsed.kind !== 'response') return 'other'
  return parsed.id === id ? 'ours' : 'foreign'
}

/** As `responseKind`, for the bytes of a message: mostly only their ends have to be decoded. */
export function bytesKind(bytes: Buffer, id: RequestId): ResponseKind {
  const idText = typeof id === 'number' ? String(id) : JSON.stringify(id)
  if (bytes[bytes.length - 1] === CLOSE_BRACE && bytes[1] === QUOTE) {
    // The third byte tells the two orders apart.
    if (bytes[2] === J) {
      const wanted = ID_FIRST.length + idText.length + THEN_RESULT.length
      if (bytes.toString('latin1', 0, wanted) === ID_FIRST + idText + THEN_RESULT) return 'ours'
    } else if (bytes[2] === R && bytes.toString('latin1', 0, RESULT_FIRST.length) === RESULT_FIRST) {
      const wanted = THEN_ID.length + idText.length + 1
      if (bytes.toString('latin1', Math.max(0, bytes.length - wanted)) === `${THEN_ID}${idText}}`) return 'ours'
    }
  }
  return responseKind(bytes.toString('utf8'), id)
}

const ID_FIRST = '{"jsonrpc":"2.0","id":'
const THEN_RESULT = ',"result":'
const RESULT_FIRST = '{"result":'
const THEN_ID = ',"jsonrpc":"2.0","id":'
const QUOTE = 0x22
const J = 0x6a
const R = 0x72
const CLOSE_BRACE = 0x7d

const RESULT = Buffer.from('"result"')
const ERROR = Buffer.from('"error"')
const METHOD = Buffer.from('"method"')
const ID = Buffer.from('"id"')

/** Cheap and too generous: whether one of the events in these bytes can be a response. */
export function mayHoldResponse(frames: Buffer): boolean {
  return frames.includes(RESULT) || frames.includes(ERROR)
}

/** As cheap, and without a miss: names of members may be written with escapes, and `"\\u0072esult"` is `result` too. */
export function mayHoldResult(data: string | Buffer): boolean {
  return data.includes('"result"') || data.includes('\\u')
}

/** Cheap and too generous: whether one of them can be a question to the client. */
export function mayHoldRequest(frames: Buffer): boolean {
  return frames.includes(METHOD) && frames.includes(ID)
}
