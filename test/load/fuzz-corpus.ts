import type { FuzzRequest } from './fuzz-request.ts'

/* Requests as clients of both eras send them. Everything the fuzz sends is made from these. */

export interface Seed {
  readonly name: string
  /** How often, in comparison with the others. */
  readonly weight: number
  /** The answer of a healthy runner to the unchanged request. Absent: several answers are right. */
  readonly status?: readonly number[]
  /** Not for a stdio server, which it would end. */
  readonly httpOnly?: true
  build(context: SeedContext): FuzzRequest
}

export interface SeedContext {
  readonly host: string
  /** Of a legacy session that is open. */
  readonly sessionId: string
  readonly id: number
}

const MODERN = '2026-07-28'
const LEGACY = '2025-11-25'
const CLIENT = { name: 'fuzz', version: '1.0.0' }
const META = {
  'io.modelcontextprotocol/protocolVersion': MODERN,
  'io.modelcontextprotocol/clientCapabilities': {},
  'io.modelcontextprotocol/clientInfo': CLIENT,
}

type Params = Readonly<Record<string, unknown>>
type Header = readonly [name: string, value: string]

/** Headers that Node's `fetch` adds to every request of the official SDKs. */
const FETCH_HEADERS: readonly Header[] = [
  ['Accept-Language', '*'],
  ['Sec-Fetch-Mode', 'cors'],
  ['User-Agent', 'node'],
  ['Accept-Encoding', 'gzip, deflate'],
]
const POST_HEADERS: readonly Header[] = [
  ['Content-Type', 'application/json'],
  ['Accept', 'application/json, text/event-stream'],
]

function request(method: string, path: string, { host }: SeedContext): FuzzRequest {
  const headers: Header[] = [['Host', host], ['Connection', 'keep-alive'], ...FETCH_HEADERS]
  return { method, path, version: 'HTTP/1.1', headers, body: undefined, framing: 'none' }
}

function post(message: unknown, extra: readonly Header[], context: SeedContext, path = '/mcp'): FuzzRequest {
  const base = request('POST', path, context)
  return {
    ...base,
    headers: [...base.headers, ...POST_HEADERS, ...extra],
    body: Buffer.from(JSON.stringify(message)),
    framing: 'length',
  }
}

export function modern(method: string, params: Params = {}, extra: readonly Header[] = []): Seed['build'] {
  const name = params['name'] ?? params['uri']
  const named: Header[] = typeof name === 'string' ? [['Mcp-Name', name]] : []
  const headers: Header[] = [['MCP-Protocol-Version', MODERN], ['Mcp-Method', method], ...named, ...extra]
  const meta = typeof params['_meta'] === 'object' ? { ...META, ...params['_meta'] } : META
  return (context) => post({ jsonrpc: '2.0', id: context.id, method, params: { ...params, _meta: meta } }, headers, context)
}

export function legacy(method: string, params?: Params): Seed['build'] {
  return (context) => post({ jsonrpc: '2.0', id: context.id, method, ...(params && { params }) }, inSession(context), context)
}

function legacyNotification(message: Params): Seed['build'] {
  return (context) => post({ jsonrpc: '2.0', ...message }, inSession(context), context)
}

function inSession({ sessionId }: SeedContext): Header[] {
  return [
    ['Mcp-Session-Id', sessionId],
    ['MCP-Protocol-Version', LEGACY],
  ]
}

export function initialize(context: SeedContext): FuzzRequest {
  const params = { protocolVersion: LEGACY, capabilities: {}, clientInfo: CLIENT }
  return post({ jsonrpc: '2.0', id: context.id, method: 'initialize', params }, [], context)
}

export const get =
  (path: string): Seed['build'] =>
  (context) =>
    request('GET', path, context)

export function endSession(context: SeedContext): FuzzRequest {
  const base = request('DELETE', '/mcp', context)
  return { ...base, headers: [...base.headers, ...inSession(context)] }
}

const OK = [200]
const TAKEN = [202]

export const SEEDS: readonly Seed[] = [
  { name: 'modern tools/call', weight: 12, status: OK, build: modern('tools/call', { name: 'echo', arguments: { text: 'grüße 🌍' } }) },
  { name: 'modern tools/list', weight: 4, status: OK, build: modern('tools/list') },
  { name: 'modern server/discover', weight: 3, status: OK, build: modern('server/discover') },
  {
    name: 'modern tools/call with a parameter header',
    weight: 4,
    status: OK,
    build: modern('tools/call', { name: 'region_query', arguments: { region: 'us-west1', query: 'q' } }, [
      ['Mcp-Param-Region', 'us-west1'],
    ]),
  },
  { name: 'modern resources/read', weight: 3, build: modern('resources/read', { uri: 'test://static-text' }) },
  { name: 'modern prompts/get', weight: 3, build: modern('prompts/get', { name: 'test_simple_prompt' }) },
  { name: 'modern unknown method', weight: 2, status: [404], build: modern('no/such') },
  { name: 'modern ping', weight: 1, status: [404], build: modern('ping') },
  { name: 'modern listen', weight: 2, status: OK, build: modern('subscriptions/listen', { notifications: { toolsListChanged: true } }) },
  { name: 'modern wrong id from the server', weight: 1, build: modern('tools/call', { name: 'wrong_id', arguments: {} }) },
  { name: 'modern broken stream', weight: 1, httpOnly: true, build: modern('tools/call', { name: 'close_mid_stream', arguments: {} }) },
  { name: 'legacy initialize', weight: 6, status: OK, build: initialize },
  { name: 'legacy initialized', weight: 3, status: TAKEN, build: legacyNotification({ method: 'notifications/initialized' }) },
  { name: 'legacy tools/call', weight: 12, status: OK, build: legacy('tools/call', { name: 'echo', arguments: { text: '日本語' } }) },
  {
    name: 'legacy tools/call with progress',
    weight: 4,
    status: OK,
    build: legacy('tools/call', { name: 'test_tool_with_progress', arguments: {}, _meta: { progressToken: 'p1' } }),
  },
  { name: 'legacy tools/list', weight: 4, status: OK, build: legacy('tools/list', {}) },
  { name: 'legacy ping', weight: 2, status: OK, build: legacy('ping') },
  { name: 'legacy setLevel', weight: 2, status: OK, build: legacy('logging/setLevel', { level: 'debug' }) },
  { name: 'legacy unknown method', weight: 2, build: legacy('no/such', {}) },
  { name: 'legacy stray response', weight: 2, build: legacyNotification({ id: 99, result: {} }) },
  {
    name: 'legacy cancel',
    weight: 2,
    status: TAKEN,
    build: legacyNotification({ method: 'notifications/cancelled', params: { requestId: 12345 } }),
  },
  { name: 'legacy garbage from the server', weight: 1, build: legacy('tools/call', { name: 'garbage', arguments: {} }) },
  { name: 'legacy broken stream', weight: 1, httpOnly: true, build: legacy('tools/call', { name: 'close_mid_stream', arguments: {} }) },
  {
    name: 'legacy stream',
    weight: 3,
    build: (context) => ({
      ...get('/mcp')(context),
      headers: [['Host', context.host], ['Accept', 'text/event-stream'], ...inSession(context)],
    }),
  },
  { name: 'SSE stream', weight: 2, build: (context) => ({ ...get('/sse')(context), headers: [['Host', context.host]] }) },
  {
    name: 'SSE message',
    weight: 2,
    build: (context) => post({ jsonrpc: '2.0', id: 1, method: 'ping' }, [], context, `/messages?sessionId=${context.sessionId}`),
  },
  { name: 'health', weight: 1, status: OK, build: get('/health') },
  { name: 'ready', weight: 1, status: OK, build: get('/ready') },
  { name: 'well-known', weight: 1, build: get('/.well-known/oauth-protected-resource/mcp') },
  { name: 'metrics', weight: 1, build: get('/metrics') },
  { name: 'nowhere', weight: 1, status: [404], build: get('/nowhere?x=1#y') },
]
