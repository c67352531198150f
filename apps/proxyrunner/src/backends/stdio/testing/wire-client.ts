import { decodeSse, type SseEvent } from '@thv/mcp/sse-decoder'
import { PATIENCE_MS } from '@thv/testkit/run/patience'

export type Wire = Record<string, unknown> & { readonly id?: string | number; readonly method?: string }

/** The response to one request, readable while it still comes. */
export interface Incoming {
  readonly status: number
  readonly headers: Headers
  readonly isStream: boolean
  /** Every message so far, in order. */
  readonly messages: readonly Wire[]
  readonly events: readonly SseEvent[]
  /** The next message that fits and was not given out before; rejects after the limit or when the answer is over. */
  next(fits?: (message: Wire) => boolean): Promise<Wire>
  /** All messages, once the answer is over. */
  all(): Promise<readonly Wire[]>
  /** Hangs up. */
  abort(): void
}

const LIMIT_MS = PATIENCE_MS

export async function send(url: string, init: RequestInit): Promise<Incoming> {
  const hangUp = new AbortController()
  const response = await fetch(url, { ...init, signal: hangUp.signal })
  const messages: Wire[] = []
  const events: SseEvent[] = []
  const waiters = new Set<() => void>()
  const isStream = response.headers.get('content-type') === 'text/event-stream'
  let isOver = false
  const changed = () => {
    for (const wake of [...waiters]) wake()
  }
  const read = async () => {
    if (!isStream) {
      const text = await response.text()
      if (text !== '' && response.headers.get('content-type') === 'application/json') messages.push(JSON.parse(text) as Wire)
      return
    }
    if (response.body === null) return
    for await (const event of decodeSse(response.body)) {
      events.push(event)
      if ((event.event ?? 'message') === 'message' && event.data !== '') messages.push(JSON.parse(event.data) as Wire)
      changed()
    }
  }
  const over = read()
    .catch(() => {}) // hung up, by either side: what came before is what counts
    .finally(() => {
      isOver = true
      changed()
    })
  const given = new Set<Wire>()
  const take = (fits: (message: Wire) => boolean) => {
    const found = messages.find((message) => !given.has(message) && fits(message))
    if (found !== undefined) given.add(found)
    return found
  }
  return {
    status: response.status,
    headers: response.headers,
    isStream,
    messages,
    events,
    async next(fits = () => true) {
      const deadline = performance.now() + LIMIT_MS
      for (;;) {
        const found = take(fits)
        if (found !== undefined) return found
        const left = deadline - performance.now()
        if (isOver || left <= 0) throw new Error(`no such message; there were ${JSON.stringify(messages)}`)
        await new Promise<void>((resolve) => {
          const wake = () => {
            clearTimeout(timer)
            waiters.delete(wake)
            resolve()
          }
          const timer = setTimeout(wake, left)
          waiters.add(wake)
        })
      }
    },
    async all() {
      await over
      return messages
    },
    abort: () => hangUp.abort(),
  }
}

export const BOTH_FORMS = 'application/json, text/event-stream'

export function post(url: string, body: unknown, headers: Record<string, string> = {}): Promise<Incoming> {
  const text = typeof body === 'string' ? body : JSON.stringify(body)
  return send(url, { method: 'POST', body: text, headers: { 'content-type': 'application/json', accept: BOTH_FORMS, ...headers } })
}

export interface LegacyClient {
  readonly sessionId: string
  readonly result: Wire
  /** Sends a request; resolves with the beginning of the answer. */
  request(method: string, params?: object, options?: CallOptions): Promise<Incoming>
  /** Sends a request and gives its response. */
  call(method: string, params?: object, options?: CallOptions): Promise<Wire>
  tool(name: string, args?: object, options?: CallOptions): Promise<Wire>
  notify(method: string, params?: object): Promise<number>
  respond(id: string | number | undefined, result: object): Promise<number>
  stream(lastEventId?: string): Promise<Incoming>
  end(): Promise<number>
}

export interface CallOptions {
  readonly id?: string | number
  readonly accept?: string
  readonly meta?: object
}

export interface OpenOptions {
  readonly capabilities?: object
  readonly version?: string
  readonly initialized?: boolean
}

export async function openLegacy(
  url: string,
  { capabilities = {}, version = '2025-11-25', initialized = true }: OpenOptions = {},
): Promise<LegacyClient> {
  const params = { protocolVersion: version, capabilities, clientInfo: { name: 'test', version: '1' } }
  const opened = await post(url, { jsonrpc: '2.0', id: 'init', method: 'initialize', params })
  const [answer] = await opened.all()
  const sessionId = opened.headers.get('mcp-session-id')
  if (sessionId === null || answer?.['result'] === undefined) throw new Error(`${opened.status} ${JSON.stringify(answer)}`)
  const headers = { 'mcp-session-id': sessionId, 'mcp-protocol-version': version }
  let lastId = 0
  const client: LegacyClient = {
    sessionId,
    result: answer['result'] as Wire,
    request(method, more = {}, { id = ++lastId, accept = BOTH_FORMS, meta } = {}) {
      const all = meta === undefined ? more : { ...more, _meta: meta }
      return post(url, { jsonrpc: '2.0', id, method, params: all }, { ...headers, accept })
    },
    async call(method, more, options) {
      const answered = await (await client.request(method, more, options)).all()
      const response = answered.find((message) => message.method === undefined)
      if (response === undefined) throw new Error(`no response to ${method}: ${JSON.stringify(answered)}`)
      return response
    },
    tool: (name, args = {}, options) => client.call('tools/call', { name, arguments: args }, options),
    notify: async (method, more) => (await post(url, { jsonrpc: '2.0', method, ...(more ? { params: more } : {}) }, headers)).status,
    respond: async (id, result) => (await post(url, { jsonrpc: '2.0', id, result }, headers)).status,
    stream: (lastEventId) => {
      const resume = lastEventId === undefined ? {} : { 'last-event-id': lastEventId }
      return send(url, { headers: { ...headers, accept: 'text/event-stream', ...resume } })
    },
    end: async () => (await send(url, { method: 'DELETE', headers })).status,
  }
  if (initialized) await client.notify('notifications/initialized')
  return client
}

export const MODERN = '2026-07-28'

export interface ModernOptions extends CallOptions {
  readonly headers?: Record<string, string>
  readonly capabilities?: object
}

export function modern(url: string, method: string, params: Record<string, unknown> = {}, options: ModernOptions = {}): Promise<Incoming> {
  const { id = 1, accept = BOTH_FORMS, meta = {}, headers = {}, capabilities = {} } = options
  const name = params['name'] ?? params['uri']
  const _meta = {
    'io.modelcontextprotocol/protocolVersion': MODERN,
    'io.modelcontextprotocol/clientCapabilities': capabilities,
    'io.modelcontextprotocol/clientInfo': { name: 'test', version: '1' },
    ...meta,
  }
  const named = typeof name === 'string' ? { 'mcp-name': name } : {}
  const body = { jsonrpc: '2.0', id, method, params: { ...params, _meta } }
  return post(url, body, { accept, 'mcp-protocol-version': MODERN, 'mcp-method': method, ...named, ...headers })
}

/** The text of a tool's result. */
export function textOf(response: Wire): string {
  const result = response['result'] as { content?: { text?: string }[] } | undefined
  const text = result?.content?.[0]?.text
  if (text === undefined) throw new Error(`no text in ${JSON.stringify(response)}`)
  return text
}

export function jsonOf(response: Wire): Record<string, unknown> {
  return JSON.parse(textOf(response)) as Record<string, unknown>
}

/** Polls until it holds. */
export async function eventually(what: string, condition: () => boolean | Promise<boolean>): Promise<void> {
  const deadline = performance.now() + LIMIT_MS
  while (!(await condition())) {
    if (performance.now() > deadline) throw new Error(`did not come true: ${what}`)
    await new Promise((resolve) => setTimeout(resolve, 5))
  }
}
