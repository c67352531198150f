import type { JsonObject, RpcResponse } from '../wire/json-rpc.ts'
import { META_CAPABILITIES, META_CLIENT_INFO, META_VERSION, MODERN } from '../wire/protocol.ts'

const ACCEPT = { accept: 'application/json, text/event-stream', 'content-type': 'application/json' }

export interface RawAnswer {
  readonly status: number
  readonly headers: Headers
  /** The body: one JSON message, or the data of each event. Broken ones are left as text. */
  readonly messages: (RpcResponse | string)[]
}

export interface RawOptions {
  readonly headers?: Record<string, string>
  readonly meta?: JsonObject
  readonly id?: string | number
  readonly signal?: AbortSignal
}

/** A request of the modern revision as it should be, but for what the options change. */
export function modernRequest(method: string, params: JsonObject = {}, { meta, id = 1 }: RawOptions = {}): JsonObject {
  const _meta = { [META_VERSION]: MODERN, [META_CAPABILITIES]: {}, [META_CLIENT_INFO]: { name: 'raw', version: '1' }, ...meta }
  return { jsonrpc: '2.0', id, method, params: { ...params, _meta } }
}

export function sendModern(url: string, method: string, params: JsonObject = {}, options: RawOptions = {}): Promise<RawAnswer> {
  const name = params['name'] ?? params['uri'] ?? params['taskId']
  const named = typeof name === 'string' ? { 'mcp-name': name } : {}
  const headers = { 'mcp-protocol-version': MODERN, 'mcp-method': method, ...named, ...options.headers }
  return sendRaw(url, modernRequest(method, params, options), { ...options, headers })
}

export async function sendRaw(url: string, body: unknown, { headers, signal }: RawOptions = {}): Promise<RawAnswer> {
  const text = typeof body === 'string' ? body : JSON.stringify(body)
  const response = await fetch(url, { method: 'POST', headers: { ...ACCEPT, ...headers }, body: text, ...(signal ? { signal } : {}) })
  return { status: response.status, headers: response.headers, messages: messagesOf(response, await response.text()) }
}

export type LegacySender = (
  method: string,
  params?: JsonObject,
  kind?: { readonly notification?: true; readonly signal?: AbortSignal },
) => Promise<RawAnswer>

/** Opens a legacy session; what it returns sends in that session. */
export async function openLegacy(url: string, capabilities: JsonObject = {}): Promise<LegacySender> {
  const params = { protocolVersion: '2025-11-25', capabilities, clientInfo: { name: 'raw', version: '1' } }
  const opened = await sendRaw(url, { jsonrpc: '2.0', id: 0, method: 'initialize', params })
  const session = opened.headers.get('mcp-session-id')
  const headers = { 'mcp-protocol-version': '2025-11-25', ...(session ? { 'mcp-session-id': session } : {}) }
  const send: LegacySender = (method, more = {}, kind) =>
    sendRaw(url, { jsonrpc: '2.0', ...(kind?.notification ? {} : { id: 1 }), method, params: more }, { headers, ...kind })
  await send('notifications/initialized', {}, { notification: true })
  return send
}

function messagesOf(response: Response, text: string): (RpcResponse | string)[] {
  if (text === '') return []
  if (response.headers.get('content-type') !== 'text/event-stream') return [parsed(text)]
  const data = text.split('\n\n').flatMap((event) => /^data: (.+)$/m.exec(event)?.[1] ?? [])
  return data.map(parsed)
}

function parsed(text: string): RpcResponse | string {
  try {
    return JSON.parse(text) as RpcResponse
  } catch {
    return text
  }
}
