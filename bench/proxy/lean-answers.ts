/**
 * The smallest MCP server of both eras that a client or proxy is content with. It checks nothing: it is here to cost as little as
 * possible, so that what stands before it shows.
 */

export const MODERN = '2026-07-28'
export const LEGACY = '2025-11-25'

interface Message {
  readonly id?: string | number
  readonly method?: string
  readonly params?: { readonly name?: string; readonly arguments?: { readonly text?: string }; readonly _meta?: Record<string, unknown> }
}

export interface Call {
  readonly method: string | undefined
  /** Of the tool that is called; `echo_stream` wants its answer as an event stream. */
  readonly tool: string | undefined
  /** The JSON text of the response; undefined where there is none to give. */
  readonly response: string | undefined
}

const SERVER = { name: 'lean', version: '1.0.0' }
const STAMP = { resultType: 'complete', _meta: { 'io.modelcontextprotocol/serverInfo': SERVER } }
const CACHE = { ttlMs: 60_000, cacheScope: 'public' }
/** Size that the tool `large`, which is in no list, adds to its result. */
export const LARGE_BYTES = 1 << 20
const LARGE = [{ type: 'text', text: 'x'.repeat(LARGE_BYTES) }]
const ECHO_SCHEMA = { type: 'object', properties: { text: { type: 'string' } }, required: ['text'] }
/** In every list, and the last of it. */
export const LAST_TOOL = 'echo_stream'
/** `legacy`: the server knows nothing of the modern era. */
const IS_LEGACY = process.env['THV_ERA'] === 'legacy'
/** Further tools, for long lists. */
const MORE = Array.from({ length: Number(process.env['THV_TOOLS'] ?? '0') }, (_, i) => `tool_${i}`)
const TOOLS = [...MORE, 'echo', LAST_TOOL].map((name) => ({ name, description: 'Returns its text.', inputSchema: ECHO_SCHEMA }))

export function answer(body: string): Call {
  const { id, method, params } = JSON.parse(body) as Message
  const tool = params?.name
  if (id === undefined || method === undefined) return { method, tool, response: undefined }
  const isModern = !IS_LEGACY && params?._meta?.['io.modelcontextprotocol/protocolVersion'] !== undefined
  const result = resultOf(method, params, isModern)
  const error = { code: -32601, message: 'Method not found' }
  return { method, tool, response: JSON.stringify({ jsonrpc: '2.0', id, ...(result === undefined ? { error } : { result }) }) }
}

function resultOf(method: string, params: Message['params'], isModern: boolean): object | undefined {
  const stamp = isModern ? STAMP : {}
  switch (method) {
    case 'tools/call':
      return { ...stamp, content: [{ type: 'text', text: params?.arguments?.text ?? '' }, ...(params?.name === 'large' ? LARGE : [])] }
    case 'tools/list':
      return { ...stamp, ...(isModern ? CACHE : {}), tools: TOOLS }
    case 'initialize':
      return isModern ? undefined : { protocolVersion: LEGACY, capabilities: { tools: {} }, serverInfo: SERVER }
    case 'ping':
      return isModern ? undefined : {}
    case 'server/discover':
      return IS_LEGACY ? undefined : { ...STAMP, ...CACHE, supportedVersions: [MODERN, LEGACY], capabilities: { tools: {} } }
    default:
      return undefined
  }
}
