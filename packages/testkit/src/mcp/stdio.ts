import type { Readable } from 'node:stream'
import type { Channel } from './features/call.ts'
import { LegacySession } from './legacy/legacy-session.ts'
import { unsupportedVersion } from './modern/envelope.ts'
import { answerModern } from './modern/modern-server.ts'
import type { World } from './state/world.ts'
import { metaOf } from './wire/classify.ts'
import {
  asMessage,
  failure,
  INVALID_REQUEST,
  isRequest,
  isRequestId,
  isResponse,
  notification,
  PARSE_ERROR,
  type RequestId,
  RpcError,
  type RpcMessage,
  type RpcNotification,
  type RpcRequest,
} from './wire/json-rpc.ts'
import { linesOf } from './wire/lines.ts'
import { type Era, META_VERSION, MODERN } from './wire/protocol.ts'

export interface StdioEnds {
  readonly input: Readable
  write(text: string): void
  /** Fault: half of a line, then no more output while the process lives on. */
  closeOutput(): void
  exit(code: number): void
}

interface Running {
  readonly request: RpcRequest
  readonly abort: AbortController
}

/** Serves one pipe until it ends: a message a line. */
export async function serveStdio(world: World, ends: StdioEnds): Promise<void> {
  const write = (message: RpcMessage) => ends.write(`${JSON.stringify(message)}\n`)
  const channel = pipeChannel(write, ends)
  const session = new LegacySession(world, { transport: 'stdio', standalone: write })
  const running = new Map<RequestId, Running>()
  let latched: Era | undefined
  let greeted = false

  function receive(line: string): void {
    if (line.trim() === '') return
    const message = parse(line)
    if (message instanceof RpcError) write(failure(undefined, message))
    else if (eraOf(message) === 'modern') handleModern(message)
    else handleLegacy(message)
  }

  /** Latching: the first request decides for the life of the process, as published servers do. */
  function eraOf(message: RpcMessage): Era {
    if (world.era !== 'dual') return world.era
    const enveloped = 'method' in message && typeof metaOf(message.params)[META_VERSION] === 'string'
    const own: Era = enveloped || (!isRequest(message) && !isResponse(message) && isRunning(message)) ? 'modern' : 'legacy'
    if (world.options.stdioMode === 'interleave') return own
    if (isRequest(message)) latched ??= own
    return latched ?? own
  }

  function handleLegacy(message: RpcMessage): void {
    if (isRequest(message) && message.method === 'initialize') greeted = true
    const probe = isRequest(message) && !greeted && message.method !== 'ping'
    if (probe && world.options.stdioProbe === 'exit') ends.exit(1)
    if (probe && world.options.stdioProbe !== 'error') return
    void session.handle(message, { channel }).then((answer) => {
      if (answer) write(answer)
    })
  }

  function handleModern(message: RpcMessage): void {
    if (isRequest(message)) {
      const handshake = message.method === 'initialize' && metaOf(message.params)[META_VERSION] === undefined
      const wanted = String(message.params?.['protocolVersion'])
      if (handshake) write(failure(message.id, unsupportedVersion(wanted, [MODERN])))
      else void answer(message)
      return
    }
    world.stats.record({ transport: 'stdio', era: 'modern', message })
    if (isResponse(message) || message.method !== 'notifications/cancelled') return
    const requestId = message.params?.['requestId']
    const cancelled = isRequestId(requestId) ? running.get(requestId) : undefined
    if (!cancelled) return
    const { id, method, params } = cancelled.request
    const name = params?.['name']
    world.stats.recordCancelled({ requestId: id, method, by: 'notification', ...(typeof name === 'string' ? { name } : {}) })
    cancelled.abort.abort(new Error('cancelled by the client'))
  }

  async function answer(request: RpcRequest): Promise<void> {
    const abort = new AbortController()
    running.set(request.id, { request, abort })
    const { response } = await answerModern(world, request, { transport: 'stdio', channel, signal: abort.signal })
    running.delete(request.id)
    if (response) write(response)
    if (response && request.method === 'subscriptions/listen') write(notification('notifications/cancelled', { requestId: request.id }))
  }

  /** A notification has no envelope of its own when it cancels a modern request. */
  function isRunning(message: RpcNotification): boolean {
    const requestId = message.params?.['requestId']
    return isRequestId(requestId) && running.has(requestId)
  }

  for await (const line of linesOf(ends.input)) receive(line)
  session.close()
  for (const { abort } of running.values()) abort.abort(new Error('the pipe has ended'))
}

function pipeChannel(write: (message: RpcMessage) => void, ends: StdioEnds): Channel {
  return {
    send: write,
    pause: () => {},
    garbage: () => ends.write('this is not JSON\n'),
    breakOff: () => {
      ends.write('{"jsonrpc":"2.0","id":')
      ends.closeOutput()
    },
  }
}

function parse(line: string): RpcMessage | RpcError {
  try {
    return asMessage(JSON.parse(line)) ?? new RpcError(INVALID_REQUEST, 'Not a single JSON-RPC message')
  } catch {
    return new RpcError(PARSE_ERROR, 'Parse error')
  }
}
