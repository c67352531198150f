import { META } from '@thv/mcp/envelope'
import { encodeHeaderValue } from '@thv/mcp/header-value'
import { SseDecoder, type SseEvent } from '@thv/mcp/sse-decoder'

export interface WireAnswer {
  readonly status: number
  readonly headers: Headers
  readonly text: string
  /** The JSON body, or the data of every event that has some. */
  // biome-ignore lint/suspicious/noExplicitAny: tests look into whatever came
  readonly messages: any[]
  readonly events: readonly SseEvent[]
}

export interface PostOptions {
  readonly headers?: Record<string, string | undefined>
  readonly signal?: AbortSignal
}

/** An MCP client that sends exactly the given bytes, and shows exactly the answer. */
export class WireClient {
  readonly url: string
  sessionId: string | undefined
  /** Sent with every request, such as `authorization`. */
  headers: Readonly<Record<string, string>>
  #id = 0

  constructor(url: string, headers: Readonly<Record<string, string>> = {}) {
    this.url = url
    this.headers = headers
  }

  async post(body: object | string, { headers = {}, signal }: PostOptions = {}): Promise<WireAnswer> {
    const all = { 'content-type': 'application/json', accept: 'application/json, text/event-stream', ...this.#session(), ...headers }
    const response = await fetch(this.url, {
      method: 'POST',
      headers: present(all),
      body: typeof body === 'string' ? body : JSON.stringify(body),
      redirect: 'manual',
      ...(signal && { signal }),
    })
    return await read(response)
  }

  /** Legacy, in the session if there is one. */
  request(method: string, params?: object, options?: PostOptions): Promise<WireAnswer> {
    return this.post({ jsonrpc: '2.0', id: ++this.#id, method, ...(params && { params }) }, options)
  }

  notify(method: string, params?: object): Promise<WireAnswer> {
    return this.post({ jsonrpc: '2.0', method, ...(params && { params }) })
  }

  call(name: string, args: object = {}, options?: PostOptions): Promise<WireAnswer> {
    return this.request('tools/call', { name, arguments: args }, options)
  }

  modern(method: string, params: Record<string, unknown> = {}, { headers = {}, signal }: PostOptions = {}): Promise<WireAnswer> {
    const given = typeof params['_meta'] === 'object' ? params['_meta'] : {}
    const meta = { [META.protocolVersion]: '2026-07-28', [META.clientCapabilities]: {}, ...given }
    const name = params['name'] ?? params['uri'] ?? params['taskId']
    const own = {
      'mcp-protocol-version': '2026-07-28',
      'mcp-method': method,
      'mcp-name': typeof name === 'string' ? encodeHeaderValue(name) : undefined,
      ...headers,
    }
    return this.post(
      { jsonrpc: '2.0', id: ++this.#id, method, params: { ...params, _meta: meta } },
      { headers: own, ...(signal && { signal }) },
    )
  }

  modernCall(name: string, args: object = {}, options?: PostOptions): Promise<WireAnswer> {
    return this.modern('tools/call', { name, arguments: args }, options)
  }

  /** The whole handshake. */
  async initialize(capabilities: object = {}): Promise<WireAnswer> {
    const clientInfo = { name: 'wire', version: '1' }
    const answer = await this.request('initialize', { protocolVersion: '2025-11-25', capabilities, clientInfo })
    this.sessionId = answer.headers.get('mcp-session-id') ?? undefined
    await this.notify('notifications/initialized')
    return answer
  }

  get(headers: Record<string, string> = {}, signal?: AbortSignal): Promise<Response> {
    const all = { accept: 'text/event-stream', ...this.#session(), ...headers }
    return fetch(this.url, { headers: present(all), ...(signal && { signal }) })
  }

  async delete(): Promise<WireAnswer> {
    return await read(await fetch(this.url, { method: 'DELETE', headers: present(this.#session()) }))
  }

  #session(): Record<string, string | undefined> {
    return this.sessionId === undefined
      ? this.headers
      : { ...this.headers, 'mcp-session-id': this.sessionId, 'mcp-protocol-version': '2025-11-25' }
  }
}

/** Reads events of an open stream up to the first whose data holds the text, then lets go of it. */
export async function readUntil(response: Response, text: string): Promise<SseEvent[]> {
  const events: SseEvent[] = []
  const decoder = new SseDecoder((event) => events.push(event))
  for await (const chunk of response.body ?? []) {
    decoder.push(chunk)
    if (events.some(({ data }) => data.includes(text))) break
  }
  return events
}

async function read(response: Response): Promise<WireAnswer> {
  const text = await response.text()
  const events: SseEvent[] = []
  const isStream = response.headers.get('content-type')?.startsWith('text/event-stream') === true
  if (isStream) new SseDecoder((event) => events.push(event)).push(Buffer.from(text))
  const texts = isStream ? events.map(({ data }) => data) : [text]
  return { status: response.status, headers: response.headers, text, events, messages: texts.flatMap(parsed) }
}

function parsed(text: string): unknown[] {
  try {
    return [JSON.parse(text)]
  } catch {
    return [] // priming events, garbage, empty bodies
  }
}

function present(headers: Record<string, string | undefined>): Record<string, string> {
  return Object.fromEntries(Object.entries(headers).flatMap(([name, value]) => (value === undefined ? [] : [[name, value]])))
}
