import { Client, type ClientOptions } from '@modelcontextprotocol/sdk/client/index.js'
import { SSEClientTransport } from '@modelcontextprotocol/sdk/client/sse.js'
import type { JSONRPCMessage } from '@modelcontextprotocol/sdk/types.js'

/** The official client of the 1.x line over HTTP+SSE, and all that came to it. */
export interface SsePeer extends AsyncDisposable {
  readonly client: Client
  /** Every message of the stream, in order. */
  readonly received: readonly JSONRPCMessage[]
  /** Where its messages went; the session is in the query. */
  readonly endpoint: URL
  text(tool: string, args?: Record<string, unknown>): Promise<string>
  json(tool: string, args?: Record<string, unknown>): Promise<Record<string, unknown>>
  /** The params of the notifications that came with this method. */
  notified(method: string): Record<string, unknown>[]
}

export interface SsePeerOptions {
  readonly name?: string
  readonly capabilities?: NonNullable<ClientOptions['capabilities']>
  /** Before the handshake: what the server may ask. */
  readonly prepare?: (client: Client) => void
}

export async function connectSse(url: string, { name = 'v1', capabilities = {}, prepare }: SsePeerOptions = {}): Promise<SsePeer> {
  const client = new Client({ name, version: '1.0.0' }, { capabilities })
  prepare?.(client)
  const { transport, received, posted } = openTransport(url)
  await client.connect(transport)
  const call = async (tool: string, args: Record<string, unknown> = {}) => {
    const result = await client.callTool({ name: tool, arguments: args })
    const [first] = result.content as { type: string; text?: string }[]
    if (first?.type !== 'text') throw new Error(`${tool} returned no text`)
    return first.text ?? ''
  }
  return {
    client,
    received,
    get endpoint() {
      const last = posted.at(-1)
      if (last === undefined) throw new Error('nothing was sent yet')
      return last
    },
    text: call,
    json: async (tool, args) => JSON.parse(await call(tool, args)) as Record<string, unknown>,
    notified: (method) => received.flatMap((message) => ('method' in message && message.method === method ? [message.params ?? {}] : [])),
    [Symbol.asyncDispose]: () => client.close(),
  }
}

export interface OpenTransport {
  readonly transport: SSEClientTransport
  readonly received: JSONRPCMessage[]
  readonly posted: URL[]
}

/** The transport alone, for what no client does. */
export function openTransport(url: string): OpenTransport {
  const posted: URL[] = []
  const received: JSONRPCMessage[] = []
  const transport = new SSEClientTransport(new URL(url), {
    fetch: (target, init) => {
      if (init?.method === 'POST') posted.push(new URL(target))
      return fetch(target, init)
    },
  })
  transport.onmessage = (message) => void received.push(message)
  return { transport, received, posted }
}

/** One message as any HTTP client would send it. */
export async function postRaw(url: URL | string, message: object): Promise<{ status: number; body: string }> {
  const response = await fetch(url, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify({ jsonrpc: '2.0', ...message }),
  })
  return { status: response.status, body: await response.text() }
}
