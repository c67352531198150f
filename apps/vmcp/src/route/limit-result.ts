import { isObject, type JsonObject } from '@thv/mcp/json-rpc'

export interface ResultLimit {
  readonly maxBytes: number
  readonly onExceed: 'error' | 'truncate'
}

/** A result of a tool within the limit. Texts are cut at a character, with a note; nothing else is ever cut. */
export function limitResult(result: JsonObject, { maxBytes, onExceed }: ResultLimit): JsonObject {
  // A question of the backend is no result yet.
  if (result['resultType'] === 'input_required') return result
  const bytes = bytesOf(result)
  if (bytes <= maxBytes) return result
  const cut = onExceed === 'truncate' ? truncated(result, maxBytes, bytes) : undefined
  return cut ?? tooLarge(bytes, maxBytes)
}

/** From the last text to the first, until it fits; undefined where it never does. */
function truncated(result: JsonObject, maxBytes: number, bytes: number): JsonObject | undefined {
  const content: unknown[] = Array.isArray(result['content']) ? [...result['content']] : []
  let over = bytes - maxBytes
  for (let at = content.length - 1; at >= 0 && over > 0; at--) {
    const block = content[at]
    if (!isObject(block) || block['type'] !== 'text' || typeof block['text'] !== 'string') continue
    const { text } = block
    const before = bytesOf(text)
    const kept = shortened(text, Math.max(0, before - over - NOTE_BYTES))
    const shorter = `${kept}\n[${Buffer.byteLength(text) - Buffer.byteLength(kept)} bytes left out]`
    if (bytesOf(shorter) >= before) continue
    content[at] = { ...block, text: shorter }
    over -= before - bytesOf(shorter)
  }
  return over > 0 ? undefined : { ...result, content }
}

const NOTE_BYTES = 48

/** The longest beginning whose JSON is not longer than that, without half a character at its end. Reads no more of the text than it keeps. */
function shortened(text: string, maxJsonBytes: number): string {
  let bytes = 2 // its quotes
  let end = 0
  while (end < text.length) {
    const code = text.codePointAt(end) ?? 0
    bytes += jsonBytes(code)
    if (bytes > maxJsonBytes) break
    end += code > 0xffff ? 2 : 1
  }
  return text.slice(0, end)
}

/** Of one character in a string of JSON. Half a pair is written as an escape. */
function jsonBytes(code: number): number {
  if (code === 0x22 || code === 0x5c || (code >= 0x08 && code <= 0x0d && code !== 0x0b)) return 2
  if (code < 0x20 || (code >= 0xd800 && code < 0xe000)) return 6
  return code < 0x80 ? 1 : code < 0x800 ? 2 : code < 0x1_0000 ? 3 : 4
}

function tooLarge(bytes: number, maxBytes: number): JsonObject {
  return { content: [{ type: 'text', text: `The result has ${bytes} bytes, and the limit is ${maxBytes}.` }], isError: true }
}

function bytesOf(value: unknown): number {
  return Buffer.byteLength(JSON.stringify(value))
}
