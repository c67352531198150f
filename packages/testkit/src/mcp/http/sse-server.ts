import type { IncomingMessage, ServerResponse } from 'node:http'
import type { Channel } from '../features/call.ts'
import { LegacySession } from '../legacy/legacy-session.ts'
import type { World } from '../state/world.ts'
import { RpcError, type RpcMessage } from '../wire/json-rpc.ts'
import { refuse } from '../wire/refuse.ts'
import { SSE_HEADERS, sseFrame } from '../wire/sse-frame.ts'
import { readMessage } from './body.ts'

export const SSE_PATH = '/sse'
export const MESSAGES_PATH = '/messages'

export interface SseServer {
  open(request: IncomingMessage, response: ServerResponse): void
  message(request: IncomingMessage, response: ServerResponse, sessionId: string | null): Promise<void>
  forgetSessions(): number
}

interface SseSession {
  readonly session: LegacySession
  readonly channel: Channel
  readonly response: ServerResponse
}

/** HTTP+SSE of 2024-11-05: everything for the client arrives on one GET, everything from it comes by POST. */
export function createSseServer(world: World): SseServer {
  const sessions = new Map<string, SseSession>()

  function open(request: IncomingMessage, response: ServerResponse): void {
    if (request.method !== 'GET') {
      refuse(response, { status: 405, headers: { allow: 'GET' } })
      return
    }
    const channel = sseChannel(response)
    const session = new LegacySession(world, { transport: 'sse', standalone: channel.send })
    sessions.set(session.id, { session, channel, response })
    world.stats.sessionsCreated += 1
    world.stats.sessions = sessions.size
    response.once('close', () => {
      session.close()
      sessions.delete(session.id)
      world.stats.sessions = sessions.size
    })
    response.writeHead(200, SSE_HEADERS)
    response.write(sseFrame({ event: 'endpoint', data: endpointFor(request, session.id) }))
  }

  async function message(request: IncomingMessage, response: ServerResponse, sessionId: string | null): Promise<void> {
    if (request.method !== 'POST') return refuse(response, { status: 405, headers: { allow: 'POST' } })
    const found = sessions.get(sessionId ?? '')
    if (!found) return refuse(response, { status: sessionId === null ? 400 : 404 })
    try {
      const received = await readMessage(request, world.options.maxBodyBytes)
      response.writeHead(202).end('Accepted')
      const answer = await found.session.handle(received, { channel: found.channel, headers: request.headers })
      if (answer) found.channel.send(answer)
    } catch (error) {
      if (!(error instanceof RpcError)) throw error
      refuse(response, { status: error.status, error })
    }
  }

  function endpointFor(request: IncomingMessage, id: string): string {
    const relative = `${MESSAGES_PATH}?sessionId=${id}`
    if (world.options.sseEndpoint === 'foreign') return `http://example.com${relative}`
    return world.options.sseEndpoint === 'absolute' ? `http://${request.headers.host}${relative}` : relative
  }

  return {
    open,
    message,
    forgetSessions: () => {
      const count = sessions.size
      for (const { response } of sessions.values()) response.destroy()
      return count
    },
  }
}

function sseChannel(response: ServerResponse): Channel {
  return {
    send: (message: RpcMessage) => {
      response.write(sseFrame({ event: 'message', data: JSON.stringify(message) }))
    },
    pause: () => {},
    garbage: () => {
      response.write('event: message\ndata: {"this is not": json\n\n')
    },
    breakOff: () => {
      response.write('event: message\ndata: {"jsonrpc":"2.0","id":', () => response.destroy())
    },
  }
}
