import type { ServerResponse } from 'node:http'
import { type Backend, type SeenRequest, startBackend } from '@thv/http/testing/backend'

export interface ScriptedCall {
  readonly id: number | string
  readonly text: string
  readonly params: Readonly<Record<string, unknown>>
  /** 1 for the first call. */
  readonly times: number
  readonly headers: SeenRequest['headers']
}

export interface ScriptedOptions {
  readonly era: 'legacy' | 'modern'
  /** Result of `tools/list`; one tool `work` unless given. Undefined: no answer comes. */
  readonly list?: (cursor: string | undefined) => object | undefined | Promise<object>
  /** Answers `tools/call`. */
  readonly call: (call: ScriptedCall, response: ServerResponse) => void
  readonly tls?: { readonly certPem: string; readonly keyPem: string }
}

export interface ScriptedBackend extends AsyncDisposable {
  readonly backend: Backend
  readonly url: string
  readonly calls: readonly ScriptedCall[]
  /** Breaks every connection. */
  isDown: boolean
}

const SERVER = { capabilities: { tools: {} }, serverInfo: { name: 'scripted', version: '1' } }
const STAMP = { resultType: 'complete', ttlMs: 0, cacheScope: 'private' }
const ONE_TOOL = { tools: [{ name: 'work', inputSchema: { type: 'object' } }] }

/** A server without sessions that does whatever the test says, byte by byte. */
export async function startScripted({ era, list = () => ONE_TOOL, call, tls }: ScriptedOptions): Promise<ScriptedBackend> {
  const calls: ScriptedCall[] = []
  const backend = await startBackend(async ({ body, headers }, response) => {
    if (scripted.isDown) return void response.destroy()
    if (body === '') return void response.writeHead(405).end()
    const { id, method, params = {} } = JSON.parse(body) as { id?: number; method: string; params?: Record<string, unknown> }
    if (id === undefined) return void response.writeHead(202).end()
    if (method === 'tools/call') {
      const seen = { id, text: body, params, headers, times: calls.length + 1 }
      calls.push(seen)
      return call(seen, response)
    }
    const result = await resultOf(method, era, () => list(params['cursor'] as string | undefined))
    if (result === 'never') return
    const answer = result === undefined ? { error: { code: -32601, message: 'Method not found' } } : { result }
    json(response, JSON.stringify({ jsonrpc: '2.0', id, ...answer }), result === undefined && era === 'modern' ? 404 : 200)
  }, tls)
  const scripted: ScriptedBackend = {
    ...{ backend, url: `${backend.url}/mcp`, calls, isDown: false },
    [Symbol.asyncDispose]: () => backend[Symbol.asyncDispose](),
  }
  return scripted
}

export function json(response: ServerResponse, text: string, status = 200): void {
  response.writeHead(status, { 'content-type': 'application/json' }).end(text)
}

/** A plain result of a call. */
export function answer(response: ServerResponse, { id }: ScriptedCall, text = 'done'): void {
  const result = { content: [{ type: 'text', text }], resultType: 'complete' }
  json(response, JSON.stringify({ jsonrpc: '2.0', id, result }))
}

type List = NonNullable<ScriptedOptions['list']>

async function resultOf(method: string, era: ScriptedOptions['era'], list: () => ReturnType<List>): Promise<object | 'never' | undefined> {
  if (method === 'tools/list') {
    const listed = await list()
    return listed === undefined ? 'never' : { ...listed, ...(era === 'modern' && STAMP) }
  }
  if (era === 'modern') return method === 'server/discover' ? { ...STAMP, supportedVersions: ['2026-07-28'], ...SERVER } : undefined
  if (method === 'initialize') return { protocolVersion: '2025-11-25', ...SERVER }
  return method === 'ping' ? {} : undefined
}
