import { INVALID_PARAMS, type JsonObject, RpcError } from '../wire/json-rpc.ts'
import { RESOURCE_NOT_FOUND } from '../wire/protocol.ts'
import type { Call } from './call.ts'
import { PNG } from './content.ts'

export const WATCHED = 'test://watched-resource'
/** With escapes and a query, which a proxy must not touch. */
const AWKWARD = 'test://awkward/%C3%BCbung%20gr%C3%B6%C3%9Fe?a=1&b=%2F'
const TEMPLATE = /^test:\/\/template\/([^/]+)\/data$/

export const RESOURCES: readonly JsonObject[] = [
  { uri: 'test://static-binary', name: 'static-binary', description: 'A picture of one pixel', mimeType: 'image/png' },
  { uri: 'test://static-text', name: 'static-text', description: 'A text that never changes', mimeType: 'text/plain' },
  { uri: AWKWARD, name: 'awkward', title: 'Übung 大きさ', description: 'An awkward URI', mimeType: 'text/plain' },
  { uri: WATCHED, name: 'watched-resource', description: 'A text to subscribe to', mimeType: 'text/plain' },
]

export const RESOURCE_TEMPLATES: readonly JsonObject[] = [
  { uriTemplate: 'test://template/{id}/data', name: 'template-data', description: 'Data by id', mimeType: 'application/json' },
]

export function readResource(call: Call): JsonObject {
  const { uri } = call.params
  if (typeof uri !== 'string') throw new RpcError(INVALID_PARAMS, 'uri must be a string')
  const contents = contentsOf(uri)
  if (contents) return { contents: [{ uri, ...contents }] }
  const code = call.era === 'legacy' ? RESOURCE_NOT_FOUND : INVALID_PARAMS
  throw new RpcError(code, `Resource not found: ${uri}`, { data: { uri } })
}

function contentsOf(uri: string): JsonObject | undefined {
  if (uri === 'test://static-text') return { mimeType: 'text/plain', text: 'This is the content of the static text resource.' }
  if (uri === 'test://static-binary') return { mimeType: 'image/png', blob: PNG }
  if (uri === WATCHED) return { mimeType: 'text/plain', text: 'Watched resource content.' }
  if (uri === AWKWARD) return { mimeType: 'text/plain', text: 'größer 大きさ 🙂' }
  const id = TEMPLATE.exec(uri)?.[1]
  return id === undefined ? undefined : { mimeType: 'application/json', text: JSON.stringify({ id, data: `Data for ID: ${id}` }) }
}
