import { isObject, type JsonObject } from '@thv/mcp/json-rpc'

export interface ResultLimit {
  readonly maxBytes: number
  readonly onExceed: 'error' | 'truncate'
}

/** A result of a tool within the limit. Texts are cut at a character, with a note; nothing else is ever cut. */
export function limitResult(result: JsonObject, { maxBytes, onExceed }: ResultLimit): JsonObject {
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

/** The longest beginning whose JSON is not longer than that, without half a character at its end. */
function shortened(text: string, maxJsonBytes: number): string {
  let low = 0
  let high = text.length
  while (low < high) {
    const middle = (low + high + 1) >> 1
    if (bytesOf(text.slice(0, middle)) <= maxJsonBytes) low = middle
    else high = middle - 1
  }
  const last = text.charCodeAt(low - 1)
  return text.slice(0, last >= 0xd800 && last < 0xdc00 ? low - 1 : low)
}

function tooLarge(bytes: number, maxBytes: number): JsonObject {
  return { content: [{ type: 'text', text: `The result has ${bytes} bytes, and the limit is ${maxBytes}.` }], isError: true }
}

function bytesOf(value: unknown): number {
  return Buffer.byteLength(JSON.stringify(value))
}
