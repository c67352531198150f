import { isObject, type Json, type JsonObject } from '@thv/kernel/json'
import type { ToolResult } from './workflow-host.ts'

/** `.steps.X.output`: the structured content, or else the content by name: `text`, `text_1`, `image_0`, `resource`, `resource_1`. */
export function outputOf({ structuredContent, content }: ToolResult): JsonObject {
  if (structuredContent) return structuredContent
  const output: Record<string, Json> = {}
  const counts = { text: 0, image: 0, resource: 0 }
  for (const block of content) {
    if (block['type'] === 'text') put('text', block['text'], false)
    if (block['type'] === 'image') put('image', block['data'], true)
    if (block['type'] === 'resource') put('resource', resourceValue(block['resource']), false)
  }
  return output

  function put(name: keyof typeof counts, value: Json | undefined, isNumbered: boolean): void {
    const count = counts[name]++
    if (value !== undefined) output[count === 0 && !isNumbered ? name : `${name}_${count}`] = value
  }
}

function resourceValue(resource: Json | undefined): Json | undefined {
  if (!isObject(resource)) return undefined
  const { text, blob } = resource as JsonObject
  return text ?? blob
}

const MAX_ERROR_LENGTH = 1_000

/** The text of a tool's error. */
export function errorText({ content }: ToolResult): string {
  const text = content.flatMap((block) => (block['type'] === 'text' && typeof block['text'] === 'string' ? [block['text']] : [])).join(' ')
  return text === '' ? 'the tool reported an error' : text.length > MAX_ERROR_LENGTH ? `${text.slice(0, MAX_ERROR_LENGTH)}…` : text
}
