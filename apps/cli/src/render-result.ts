import { jsonEqual } from '@thv/kernel/json'
import { isObject, type JsonObject } from '@thv/mcp/json-rpc'
import { plainText } from './text/plain-text.ts'

/** A tool's result for people: text as it is, structured content as JSON, and one line for whatever cannot be shown. */
export function renderResult(result: JsonObject): string {
  const { content, structuredContent } = result
  const blocks = (Array.isArray(content) ? content : []).filter((block) => !repeats(block, structuredContent)).map(renderBlock)
  if (structuredContent !== undefined) blocks.push(JSON.stringify(structuredContent, null, 2))
  return blocks.map((block) => (block.endsWith('\n') ? block : `${block}\n`)).join('')
}

/** Servers send structured content as text too, for clients that do not know it. */
function repeats(block: unknown, structured: unknown): boolean {
  if (structured === undefined || !isObject(block) || block['type'] !== 'text' || typeof block['text'] !== 'string') return false
  try {
    return jsonEqual(JSON.parse(block['text']), structured)
  } catch {
    return false
  }
}

function renderBlock(block: unknown): string {
  if (!isObject(block)) return '[unknown content]'
  const { type, text } = block
  if (type === 'text' && typeof text === 'string') return text
  if (type === 'image' || type === 'audio') return placeholder([type, block['mimeType'], sizeOfBase64(block['data'])])
  if (type === 'resource_link') return placeholder(['link', block['name'], block['uri'], block['mimeType']])
  return type === 'resource' ? renderResource(block['resource']) : placeholder(['unknown content', type])
}

function renderResource(resource: unknown): string {
  const { uri, mimeType, text, blob } = isObject(resource) ? resource : {}
  const size = typeof text === 'string' ? sizeText(Buffer.byteLength(text)) : sizeOfBase64(blob)
  return placeholder(['resource', uri, mimeType, size])
}

function placeholder(parts: readonly unknown[]): string {
  return `[${parts
    .map(plainText)
    .filter((part) => part !== '')
    .join(' ')}]`
}

function sizeOfBase64(data: unknown): string {
  return typeof data === 'string' ? sizeText(Buffer.byteLength(data, 'base64')) : ''
}

function sizeText(bytes: number): string {
  if (bytes < 1_000) return `${bytes} B`
  return bytes < 1_000_000 ? `${(bytes / 1_000).toFixed(1)} kB` : `${(bytes / 1_000_000).toFixed(1)} MB`
}
