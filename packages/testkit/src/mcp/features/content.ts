import type { JsonObject } from '../wire/json-rpc.ts'

/** A red pixel. */
export const PNG = 'iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mP8z8DwHwAFBQIAX8jx0gAAAABJRU5ErkJggg=='
/** A RIFF header with no samples. */
export const WAV = 'UklGRiQAAABXQVZFZm10IBAAAAABAAEAQB8AAEAfAAABAAgAZGF0YQAAAAA='

export function textBlock(text: string): JsonObject {
  return { type: 'text', text }
}

export function imageBlock(): JsonObject {
  return { type: 'image', data: PNG, mimeType: 'image/png' }
}

export function resourceBlock(uri: string, text: string): JsonObject {
  return { type: 'resource', resource: { uri, mimeType: 'text/plain', text } }
}

export function textResult(text: string): JsonObject {
  return { content: [textBlock(text)] }
}

export function errorResult(text: string): JsonObject {
  return { content: [textBlock(text)], isError: true }
}

/** Machine-readable for tests, readable for people. */
export function jsonResult(value: JsonObject): JsonObject {
  return { content: [textBlock(JSON.stringify(value))], structuredContent: value }
}
