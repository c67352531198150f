import type { Mutation } from './body-mutations.ts'
import { type FuzzRequest, removeHeader, setHeader } from './fuzz-request.ts'
import type { Prng } from './prng.ts'

const MCP_HEADERS = ['Mcp-Session-Id', 'MCP-Protocol-Version', 'Mcp-Method', 'Mcp-Name', 'Mcp-Param-Region', 'Last-Event-ID']
const METHODS = ['GET', 'POST', 'PUT', 'DELETE', 'PATCH', 'OPTIONS', 'HEAD', 'TRACE', 'CONNECT', 'get', 'M-SEARCH', 'PRI', 'X Y', '']
const PATHS = [
  ...['/', '//mcp', '/mcp/', '/mcp?a=1&a=2', '/MCP', '/mcp/../mcp', '/%6dcp', '/mcp%00', '*', 'mcp', '/mcp#x', '/sse', '/messages'],
  ...[
    '/messages?sessionId=',
    '/messages?sessionId=x&sessionId=y',
    '/messages?sessionId=%ff',
    'http://127.0.0.1/mcp',
    'http://evil.example/mcp',
  ],
  ...[
    '/health',
    '/ready',
    '/metrics',
    '/.well-known/oauth-protected-resource',
    '/mcp?%',
    `/mcp?${'q'.repeat(3_000)}`,
    '/mcp\u00ff',
    '/\u0001',
  ],
]
const VERSIONS = ['2026-07-28', '2025-11-25', '2025-03-26', '2024-11-05', '1999-01-01', '', 'x', '2026-07-28, 2025-11-25', '2'.repeat(300)]
const SESSIONS = [
  '',
  'x',
  'not-a-session',
  '00000000-0000-4000-8000-000000000000',
  'a b',
  '\u00ff',
  'x'.repeat(5_000),
  '../../x',
  '{"a":1}',
]
const NAMES = [
  'echo',
  'tools/call',
  'initialize',
  '',
  ' echo ',
  '=?base64?ZWNobw==?=',
  '=?base64?!!!?=',
  '=?base64?ZWNo',
  '\u00e9',
  '\u0001',
  'e\tc',
]
const CONTENT_TYPES = [
  ...['text/plain', 'application/json; charset=utf-8', 'application/json; charset=latin1', 'APPLICATION/JSON', '', 'application/json;'],
  ...['application/x-www-form-urlencoded', 'multipart/form-data; boundary=x', 'application/json, text/plain', 'a'.repeat(2_000)],
]
const ACCEPTS = [
  '*/*',
  'application/json',
  'text/event-stream',
  'text/html',
  '',
  'application/*',
  'application/json;q=0',
  'q'.repeat(1_000),
  ', ,',
]
const HTTP_VERSIONS = ['HTTP/1.0', 'HTTP/0.9', 'HTTP/2.0', 'HTTP/1.2', 'HTTP', '', 'ICY/1.1']
const LENGTHS = ['0', '1', '99999', '-1', '+5', '0x10', '1e3', '', '5, 5', '5, 6', '18446744073709551616', ' 7 ']

const ODD_HEADERS: readonly (readonly [string, string])[] = [
  ['', 'x'],
  [' X', 'x'],
  ['A B', 'x'],
  ['X-\u0000', 'x'],
  ['X', 'a\u0000b'],
  ['X', 'a\rb'],
  ['X', 'a\nY: b'],
  ['__proto__', 'x'],
  ['constructor', 'x'],
  ['Mcp-Param-', 'x'],
  ['Mcp-Param-Region', '\u00ff\u00fe'],
]

export const HEAD_MUTATIONS: readonly Mutation[] = [
  { name: 'a header less', weight: 6, apply: (request, random) => removeHeader(request, anyHeader(request, random)) },
  {
    name: 'a header twice',
    weight: 5,
    apply(request, random) {
      const name = anyHeader(request, random)
      const value = random.pick([...VERSIONS, ...SESSIONS, ...NAMES])
      request.headers.splice(random.below(request.headers.length + 1), 0, [name, value])
    },
  },
  { name: 'an MCP header that contradicts', weight: 8, apply: contradict },
  change('Content-Type', 4, CONTENT_TYPES),
  change('Accept', 4, ACCEPTS),
  change('Content-Encoding', 2, ['gzip', 'br', 'identity', 'deflate, gzip', '']),
  change('Host', 3, ['evil.example.com', '127.0.0.1', 'localhost:1', '[::1]', '', 'a b', '127.0.0.1:x', 'user@127.0.0.1']),
  change('Origin', 3, ['http://evil.example.com', 'null', 'http://localhost', 'http://127.0.0.1:1', '', 'x']),
  change('Connection', 2, ['close', 'upgrade', 'mcp-session-id, mcp-method', 'keep-alive, host', '']),
  change('Expect', 2, ['100-continue', '100-Continue', 'something']),
  change('Upgrade', 1, ['websocket', 'h2c', 'TLS/1.0']),
  change('Last-Event-ID', 2, ['', '0', 'x'.repeat(3_000), 'a-1', '\u00ff', '-5', 'NaN']),
  change('Authorization', 1, ['Bearer x', 'Basic !!!', '']),
  change('X-Forwarded-For', 1, ['10.0.0.1', '" onload=x', '1'.repeat(4_000)]),
  { name: 'a wrong length', weight: 4, apply: wrongLength },
  { name: 'length and chunks', weight: 2, apply: (request, random) => void request.headers.push(...bothFramings(random)) },
  replace('chunks', 4, ({ body, framing }) => ({ framing: body === undefined ? framing : 'chunked' })),
  replace('another method', 5, (_request, random) => ({ method: random.pick(METHODS) })),
  replace('another path', 5, (_request, random) => ({ path: random.pick(PATHS) })),
  replace('another HTTP version', 2, (_request, random) => ({ version: random.pick(HTTP_VERSIONS) })),
  {
    name: 'many headers',
    weight: 1,
    apply: (request, random) => void request.headers.push(...Array.from({ length: random.pick([90, 101, 400]) }, (_, n) => fresh(n))),
  },
  {
    name: 'a large header',
    weight: 1,
    apply: (request, random) => setHeader(request, 'X-Large', 'y'.repeat(random.pick([8_000, 15_000, 70_000]))),
  },
  { name: 'an odd header', weight: 3, apply: (request, random) => void request.headers.push(random.pick(ODD_HEADERS)) },
]

function change(name: string, weight: number, values: readonly string[]): Mutation {
  return { name: `another ${name}`, weight, apply: (request, random) => setHeader(request, name, random.pick(values)) }
}

function replace(name: string, weight: number, part: (request: FuzzRequest, random: Prng) => Partial<FuzzRequest>): Mutation {
  return { name, weight, apply: (request, random) => void Object.assign(request, part(request, random)) }
}

function contradict(request: FuzzRequest, random: Prng): void {
  const name = random.pick(MCP_HEADERS)
  const values = name === 'Mcp-Session-Id' ? SESSIONS : name === 'MCP-Protocol-Version' ? VERSIONS : NAMES
  setHeader(request, name, random.pick(values))
}

function wrongLength(request: FuzzRequest, random: Prng): void {
  if (random.chance(0.6)) request.framing = 'none'
  request.headers.push(['Content-Length', random.pick(LENGTHS)])
}

function bothFramings(random: Prng): [string, string][] {
  return [
    ['Transfer-Encoding', random.pick(['chunked', 'identity', 'chunked, chunked', 'gzip, chunked', 'x', ' chunked', 'Chunked'])],
    ...(random.chance(0.5) ? [['Content-Length', '5'] as [string, string]] : []),
  ]
}

function anyHeader({ headers }: FuzzRequest, random: Prng): string {
  return headers.length === 0 ? 'X' : random.pick(headers)[0]
}

function fresh(n: number): [string, string] {
  return [`X-Fresh-${n}`, String(n)]
}
