import { type Backend, startBackend } from '@thv/http/testing/backend'

export interface GuardedBackend extends AsyncDisposable {
  readonly backend: Backend
  readonly url: string
  /** Values of the header of every request, in their order. */
  readonly seen: (string | undefined)[]
  /** Whether a value of the header is accepted. */
  accepts: (value: string | undefined) => boolean
  /** Answers 503 to everything. */
  isDown: boolean
  /** Answers nothing at all. */
  isSilent: boolean
}

export interface GuardedBackendOptions {
  /** Lower case; `authorization` unless given. */
  readonly header?: string
  /** Name of its tool for a value of the header. */
  readonly toolOf?: (value: string) => string
  /** Its tool for a value of the header, in place of one with that name. */
  readonly tool?: (value: string) => object
  readonly tls?: { readonly certPem: string; readonly keyPem: string }
}

/** A legacy server without sessions that answers 401 to every request without the right header. Its one tool is named like its caller. */
export async function startGuardedBackend(options: GuardedBackendOptions = {}): Promise<GuardedBackend> {
  const { header = 'authorization', toolOf = () => 'hello', tls } = options
  const { tool = (value: string) => ({ name: toolOf(value), inputSchema: { type: 'object' } }) } = options
  const seen: (string | undefined)[] = []
  const backend = await startBackend(({ body, headers }, response) => {
    const value = headers[header] as string | undefined
    seen.push(value)
    if (guarded.isSilent) return
    if (guarded.isDown) return void response.writeHead(503).end()
    if (!guarded.accepts(value)) return void response.writeHead(401, { 'www-authenticate': 'Bearer' }).end()
    if (body === '') return void response.writeHead(405).end()
    const { id, method } = JSON.parse(body) as { id?: number; method: string }
    if (id === undefined) return void response.writeHead(202).end()
    const result = {
      initialize: { protocolVersion: '2025-11-25', capabilities: { tools: {} }, serverInfo: { name: 's', version: '1' } },
      'tools/list': { tools: [tool(value ?? '')] },
      'tools/call': { content: [{ type: 'text', text: value ?? '' }] },
      ping: {},
    }[method]
    const answer = result === undefined ? { error: { code: -32601, message: 'no' } } : { result }
    response.writeHead(200, { 'content-type': 'application/json' }).end(JSON.stringify({ jsonrpc: '2.0', id, ...answer }))
  }, tls)
  const guarded: GuardedBackend = {
    backend,
    url: `${backend.url}/mcp`,
    seen,
    accepts: (value) => value !== undefined,
    isDown: false,
    isSilent: false,
    [Symbol.asyncDispose]: () => backend[Symbol.asyncDispose](),
  }
  return guarded
}
