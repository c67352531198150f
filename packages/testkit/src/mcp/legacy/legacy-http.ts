import type { IncomingMessage, ServerResponse } from 'node:http'
import type { World } from '../state/world.ts'
import { INVALID_REQUEST, isRequest, RpcError, type RpcMessage } from '../wire/json-rpc.ts'
import { BAD_SESSION, isLegacyVersion, SESSION_NOT_FOUND } from '../wire/protocol.ts'
import { refuse } from '../wire/refuse.ts'
import { HttpSession } from './http-session.ts'

const MAX_SESSIONS = 1_000

export interface LegacyHttp {
  post(request: IncomingMessage, response: ServerResponse, message: RpcMessage): Promise<void>
  /** GET and DELETE. */
  other(request: IncomingMessage, response: ServerResponse): void
  hasSession(request: IncomingMessage): boolean
  /** Fault: drops all sessions, as a restarted server would. Open calls end without an answer. */
  forgetSessions(): number
  /** Fault: ends every open connection; the sessions stay. */
  dropStreams(): void
}

/** The handshake revisions over streamable HTTP. */
export function createLegacyHttp(world: World): LegacyHttp {
  const sessions = new Map<string, HttpSession>()

  function create(): HttpSession {
    const created = new HttpSession(world)
    sessions.set(created.id, created)
    world.stats.sessionsCreated += 1
    for (const id of sessions.keys()) if (sessions.size > MAX_SESSIONS) remove(id)
    world.stats.sessions = sessions.size
    return created
  }

  function remove(id: string): void {
    sessions.get(id)?.close()
    sessions.delete(id)
    world.stats.sessions = sessions.size
  }

  /** Throws: no id is 400, an id that is not known 404 (or whatever the fault says). */
  function find(request: IncomingMessage): HttpSession {
    const id = sessionIdOf(request)
    if (id === undefined) throw new RpcError(BAD_SESSION, 'Bad Request: Mcp-Session-Id header is required', { status: 400 })
    const found = sessions.get(id)
    if (!found) throw new RpcError(SESSION_NOT_FOUND, 'Session not found', { status: world.options.unknownSessionStatus })
    checkVersion(request)
    return found
  }

  async function post(request: IncomingMessage, response: ServerResponse, message: RpcMessage): Promise<void> {
    if (!world.options.sessions) {
      const version = request.headers['mcp-protocol-version']
      return new HttpSession(world, { version: isLegacyVersion(version) ? version : '2025-03-26' }).post(request, response, message)
    }
    const opening = isRequest(message) && message.method === 'initialize'
    if (!opening) return find(request).post(request, response, message)
    if (sessionIdOf(request) !== undefined) {
      find(request)
      throw new RpcError(INVALID_REQUEST, 'Invalid Request: Server already initialized', { status: 400 })
    }
    const session = create()
    response.setHeader('mcp-session-id', session.id)
    return session.post(request, response, message)
  }

  function other(request: IncomingMessage, response: ServerResponse): void {
    const { method } = request
    if (!world.options.sessions) refuse(response, { status: 405, headers: { allow: 'POST' } })
    else if (method === 'DELETE') end(request, response)
    else if (method === 'GET') listen(request, response)
    else refuse(response, { status: 405, headers: { allow: 'GET, POST, DELETE' } })
  }

  function end(request: IncomingMessage, response: ServerResponse): void {
    remove(find(request).id)
    response.writeHead(200).end()
  }

  function listen(request: IncomingMessage, response: ServerResponse): void {
    const session = find(request)
    const lastEventId = request.headers['last-event-id']
    const accepts = String(request.headers.accept).includes('text/event-stream')
    world.stats.streams += 1
    response.once('close', () => {
      world.stats.streams -= 1
    })
    response.setHeader('mcp-session-id', session.id)
    if (!accepts) refuse(response, { status: 406 })
    else if (!session.get(response, typeof lastEventId === 'string' ? lastEventId : undefined)) refuse(response, { status: 400 })
  }

  return {
    post,
    other,
    hasSession: (request) => sessions.has(sessionIdOf(request) ?? ''),
    forgetSessions: () => {
      const count = sessions.size
      for (const id of [...sessions.keys()]) remove(id)
      return count
    },
    dropStreams: () => {
      for (const session of sessions.values()) session.detach()
    },
  }
}

function checkVersion(request: IncomingMessage): void {
  const version = request.headers['mcp-protocol-version']
  if (version === undefined || isLegacyVersion(version)) return
  throw new RpcError(BAD_SESSION, `Bad Request: Unsupported protocol version: ${String(version)}`, { status: 400 })
}

function sessionIdOf(request: IncomingMessage): string | undefined {
  const id = request.headers['mcp-session-id']
  return typeof id === 'string' ? id : undefined
}
