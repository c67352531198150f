/* Requests of one client, as they stand on the wire. */

const HEADERS = { 'content-type': 'application/json', accept: 'application/json, text/event-stream' }
const LEGACY = '2025-11-25'
const MODERN = '2026-07-28'
const CLIENT = { name: 'bench', version: '1' }
const LIMIT_MS = 60_000

type Headers = Readonly<Record<string, string>>

interface Answer {
  readonly result?: { readonly tools?: readonly { readonly name: string }[]; readonly nextCursor?: string; readonly isError?: boolean }
}

export interface LegacySession {
  readonly headers: Headers
  /** Names on all pages. */
  toolNames(): Promise<string[]>
  end(): Promise<void>
}

export async function openLegacy(url: string): Promise<LegacySession> {
  const params = { protocolVersion: LEGACY, capabilities: {}, clientInfo: CLIENT }
  const opening = await post(url, { jsonrpc: '2.0', id: 1, method: 'initialize', params }, {})
  await opening.arrayBuffer()
  const headers = { 'mcp-session-id': opening.headers.get('mcp-session-id') ?? '', 'mcp-protocol-version': LEGACY }
  await (await post(url, { jsonrpc: '2.0', method: 'notifications/initialized' }, headers)).arrayBuffer()
  let id = 1
  return {
    headers,
    async toolNames() {
      const names: string[] = []
      let cursor: string | undefined
      do {
        const page = await post(
          url,
          { jsonrpc: '2.0', id: ++id, method: 'tools/list', params: { ...(cursor !== undefined && { cursor }) } },
          headers,
        )
        const { result } = answerIn(await page.text())
        for (const { name } of result?.tools ?? []) names.push(name)
        cursor = result?.nextCursor
      } while (cursor !== undefined)
      return names
    },
    async end() {
      await (
        await fetch(url, { method: 'DELETE', headers: { ...HEADERS, ...headers }, signal: AbortSignal.timeout(LIMIT_MS) })
      ).arrayBuffer()
    },
  }
}

/** The answer of a list, plain or as the last event of a stream. */
function answerIn(text: string): Answer {
  const lines = text.startsWith('{') ? [text] : [...text.matchAll(/^data: ?(.*)$/gm)].map(([, data = '']) => data)
  return JSON.parse(lines.findLast((line) => line.includes('"result"')) ?? '{}') as Answer
}

/** One call of a modern client. Throws where the answer is no result. */
export async function callModern(url: string, name: string, text: string, more: Headers = {}): Promise<void> {
  const meta = {
    'io.modelcontextprotocol/protocolVersion': MODERN,
    'io.modelcontextprotocol/clientCapabilities': {},
    'io.modelcontextprotocol/clientInfo': CLIENT,
  }
  const message = { jsonrpc: '2.0', id: 1, method: 'tools/call', params: { name, arguments: { text }, _meta: meta } }
  const headers = { 'mcp-protocol-version': MODERN, 'mcp-method': 'tools/call', 'mcp-name': name, ...more }
  const answer = await (await post(url, message, headers)).text()
  if (!answer.includes('"result"') || answer.includes('"isError":true'))
    throw new Error(`the call of ${name} was answered with ${answer.slice(0, 500)}`)
}

function post(url: string, message: object, headers: Headers): Promise<Response> {
  return fetch(url, {
    ...{ method: 'POST', headers: { ...HEADERS, ...headers }, body: JSON.stringify(message) },
    signal: AbortSignal.timeout(LIMIT_MS),
  })
}
