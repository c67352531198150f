import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import type { World } from '../state/world.ts'
import { INTERNAL_ERROR, INVALID_REQUEST, RpcError } from '../wire/json-rpc.ts'
import { refuse } from '../wire/refuse.ts'
import { createAdmin, type FixtureAdmin, handleAdmin } from './admin.ts'
import { createEdgeFaults } from './faults.ts'
import { isLocal } from './host-guard.ts'
import { createSseServer, MESSAGES_PATH, SSE_PATH } from './sse-server.ts'
import { createStreamableHttp } from './streamable-http.ts'

const MCP_PATH = '/mcp'
const LOOPBACK = '127.0.0.1'

export interface RunningHttp {
  readonly url: string
  readonly admin: FixtureAdmin
  /** Closes everything at once: a peer sees its connections break. */
  close(): Promise<void>
}

export async function serveHttp(world: World): Promise<RunningHttp> {
  const { host } = world.options
  const faults = createEdgeFaults()
  const streamable = createStreamableHttp(world)
  const sse = createSseServer(world)
  const isSse = world.options.transport === 'sse'
  const admin = createAdmin(world, {
    faults,
    forgetSessions: () => (isSse ? sse.forgetSessions() : streamable.legacy.forgetSessions()),
    dropStreams: () => (isSse ? void sse.forgetSessions() : streamable.legacy.dropStreams()),
  })

  async function route(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const forbidden = new RpcError(INVALID_REQUEST, 'Invalid Host or Origin')
    if (host === LOOPBACK && !isLocal(request.headers)) return refuse(response, { status: 403, error: forbidden })
    const url = new URL(request.url ?? '/', 'http://127.0.0.1')
    if (url.pathname.startsWith('/admin/')) return handleAdmin(world, admin, { request, response, url })
    if (faults.apply(response)) return
    if (!isSse && url.pathname === MCP_PATH) return streamable.handle(request, response)
    if (isSse && url.pathname === SSE_PATH) return sse.open(request, response)
    if (isSse && url.pathname === MESSAGES_PATH) return sse.message(request, response, url.searchParams.get('sessionId'))
    refuse(response, { status: 404 })
  }

  // Idle connections stay: one that is closed in the moment of the next request fails that request, and a busy machine makes such moments long.
  const server = createServer({ keepAliveTimeout: 0 }, (request, response) => {
    response.once('close', () => world.stats.recordHttp(request.method ?? '', response.statusCode))
    route(request, response).catch((error: unknown) => {
      const text = error instanceof Error ? error.message : String(error)
      refuse(response, { status: 500, error: new RpcError(INTERNAL_ERROR, text) })
    })
  })
  server.on('connection', () => {
    world.stats.connections += 1
  })
  const port = await listen(server, world.options)
  return { url: `http://${host}:${port}${isSse ? SSE_PATH : MCP_PATH}`, admin, close: () => close(server) }
}

function listen(server: Server, { host, port }: { host: string; port: number }): Promise<number> {
  return new Promise((resolve, reject) => {
    server.once('error', reject)
    server.listen({ host, port }, () => {
      server.off('error', reject)
      resolve((server.address() as AddressInfo).port)
    })
  })
}

function close(server: Server): Promise<void> {
  return new Promise((resolve) => {
    server.close(() => resolve())
    server.closeAllConnections()
  })
}
