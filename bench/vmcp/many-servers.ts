import { randomUUID } from 'node:crypto'
import { createServer, type ServerResponse } from 'node:http'
import { announce } from '../proxy/listening.ts'

/*
 * Many legacy servers in one process, `/0/mcp`, `/1/mcp` and so on, each with THV_TOOLS tools. They announce changes of their lists: `POST /N/change` adds
 * a tool. Lists of server 0 take THV_SLOW_MS. `GET /streams` counts the streams that are open.
 */

const TOOLS = Number(process.env['THV_TOOLS'] ?? '100')
const SLOW_MS = Number(process.env['THV_SLOW_MS'] ?? '0')
const SCHEMA = { type: 'object', properties: { text: { type: 'string' } } }
const LIST_CHANGED = 'event: message\ndata: {"jsonrpc":"2.0","method":"notifications/tools/list_changed"}\n\n'

const added = new Map<string, number>()
const streams = new Map<string, Set<ServerResponse>>()

interface Message {
  readonly id?: number | string
  readonly method: string
  readonly params?: { readonly arguments?: { readonly text?: string } }
}

const server = createServer((request, response) => {
  const [, name = '', what = ''] = (request.url ?? '').split('/')
  if (request.url === '/streams') response.end(String([...streams.values()].reduce((sum, of) => sum + of.size, 0)))
  else if (what === 'change') {
    added.set(name, (added.get(name) ?? 0) + 1)
    for (const stream of streams.get(name) ?? []) stream.write(LIST_CHANGED)
    response.end()
  } else if (request.method === 'DELETE') response.writeHead(204).end()
  else if (request.method === 'GET') listen(name, response)
  else {
    const chunks: Buffer[] = []
    request.on('data', (chunk: Buffer) => chunks.push(chunk))
    request.on('end', () => answer(name, JSON.parse(Buffer.concat(chunks).toString('utf8')) as Message, response))
  }
})

function listen(name: string, response: ServerResponse): void {
  const all = streams.get(name) ?? new Set()
  streams.set(name, all.add(response))
  response.on('close', () => all.delete(response))
  response.writeHead(200, { 'content-type': 'text/event-stream' }).flushHeaders()
}

function answer(name: string, { id, method, params }: Message, response: ServerResponse): void {
  if (id === undefined) return void response.writeHead(202).end()
  const result = resultOf(name, method, params)
  const body = JSON.stringify({
    jsonrpc: '2.0',
    id,
    ...(result === undefined ? { error: { code: -32601, message: 'Method not found' } } : { result }),
  })
  const session = method === 'initialize' ? { 'mcp-session-id': randomUUID() } : {}
  const send = () => response.writeHead(200, { 'content-type': 'application/json', ...session }).end(body)
  if (method === 'tools/list' && name === '0' && SLOW_MS > 0) setTimeout(send, SLOW_MS)
  else send()
}

function resultOf(name: string, method: string, params: Message['params']): object | undefined {
  if (method === 'initialize')
    return { protocolVersion: '2025-11-25', capabilities: { tools: { listChanged: true } }, serverInfo: { name: 'many', version: '1.0.0' } }
  if (method === 'tools/call') return { content: [{ type: 'text', text: params?.arguments?.text ?? '' }] }
  if (method !== 'tools/list') return method === 'ping' ? {} : undefined
  const more = Array.from({ length: added.get(name) ?? 0 }, (_, i) => `added_${i + 1}`)
  const names = [...Array.from({ length: TOOLS }, (_, i) => `tool_${i}`), ...more]
  return { tools: names.map((tool) => ({ name: tool, description: 'Returns its text.', inputSchema: SCHEMA })) }
}

server.keepAliveTimeout = 600_000
announce(server)
