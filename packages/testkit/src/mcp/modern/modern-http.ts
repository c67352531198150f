import type { IncomingMessage, ServerResponse } from 'node:http'
import type { Channel } from '../features/call.ts'
import { supportedVersions, type World } from '../state/world.ts'
import { INVALID_PARAMS, isRequest, RpcError, type RpcMessage, type RpcRequest } from '../wire/json-rpc.ts'
import { META_VERSION } from '../wire/protocol.ts'
import { refuse } from '../wire/refuse.ts'
import { SSE_HEADERS, SSE_KEEP_ALIVE, sseFrame } from '../wire/sse-frame.ts'
import { unsupportedVersion } from './envelope.ts'
import { answerModern, type ModernAnswer } from './modern-server.ts'

/** The modern revision over HTTP: one POST, one answer. Leaving before the answer cancels. */
export async function postModern(
  world: World,
  exchange: { request: IncomingMessage; response: ServerResponse },
  message: RpcMessage,
): Promise<void> {
  const { request, response } = exchange
  if (!isRequest(message)) {
    world.stats.record({ transport: 'http', era: 'modern', message, headers: request.headers })
    response.writeHead(202).end()
    return
  }
  const gone = new AbortController()
  response.once('close', () => {
    if (response.writableFinished) return
    recordDisconnect(world, message)
    gone.abort(new Error('the client has gone'))
  })
  const reply = new ModernReply(world, response, message.method === 'subscriptions/listen')
  const answer = await answerModern(world, message, { transport: 'http', channel: reply, headers: request.headers, signal: gone.signal })
  reply.finish(answer)
}

/** The answer of a server without handshake to a client that begins with one. */
export function refuseLegacy(world: World, response: ServerResponse, message: RpcMessage): void {
  if (!isRequest(message)) {
    refuse(response, { status: 400 })
    return
  }
  const error =
    message.method === 'initialize'
      ? unsupportedVersion(String(message.params?.['protocolVersion']), supportedVersions(world))
      : new RpcError(INVALID_PARAMS, `Missing params._meta["${META_VERSION}"]`)
  refuse(response, { status: 400, error, id: message.id })
}

/** Plain JSON until the handler has something to say first. */
class ModernReply implements Channel {
  readonly #response: ServerResponse
  readonly #mode: 'auto' | 'sse' | 'json'
  readonly #keepAliveMs: number
  #keepAlive: NodeJS.Timeout | undefined

  constructor(world: World, response: ServerResponse, streams: boolean) {
    this.#response = response
    this.#mode = streams ? 'auto' : world.options.responseMode
    this.#keepAliveMs = world.options.keepAliveMs
    response.once('close', () => clearInterval(this.#keepAlive))
  }

  send(message: RpcMessage): void {
    if (this.#mode === 'json' || this.#response.writableEnded) return
    this.#begin()
    this.#response.write(sseFrame({ event: 'message', data: JSON.stringify(message) }))
  }

  finish({ status, response: answer }: ModernAnswer): void {
    if (!answer) {
      this.#response.destroy()
      return
    }
    if (this.#response.headersSent || (this.#mode === 'sse' && status === 200)) {
      this.#begin()
      this.#response.end(sseFrame({ event: 'message', data: JSON.stringify(answer) }))
      return
    }
    this.#response.writeHead(status, { 'content-type': 'application/json', 'cache-control': 'no-store' })
    this.#response.end(JSON.stringify(answer))
  }

  /** There is no polling in this revision. */
  pause(): void {}

  garbage(): void {
    this.#begin()
    this.#response.write('data: {"this is not": json\n\n')
  }

  breakOff(): void {
    this.#begin()
    this.#response.write('data: {"jsonrpc":"2.0","id":', () => this.#response.destroy())
  }

  #begin(): void {
    if (this.#response.headersSent) return
    this.#response.writeHead(200, SSE_HEADERS)
    this.#response.flushHeaders()
    this.#keepAlive = setInterval(() => this.#response.write(SSE_KEEP_ALIVE), this.#keepAliveMs)
  }
}

function recordDisconnect(world: World, { id, method, params }: RpcRequest): void {
  const name = params?.['name']
  world.stats.recordCancelled({ requestId: id, method, by: 'disconnect', ...(typeof name === 'string' ? { name } : {}) })
}
