import type { IncomingMessage } from 'node:http'
import type { Clock } from '@thv/kernel/clock'
import { ThvError } from '@thv/kernel/errors'
import WebSocket from 'ws'
import { openScope } from '../client/call-scope.ts'
import type { Connection } from '../client/connection.ts'
import { type Credentials, credentialsOf, tlsOptions } from '../client/credentials.ts'
import { badRequest, type CallName, KubeApiError } from '../client/kube-api-error.ts'
import { objectPath } from '../client/paths.ts'
import { targetOf } from '../client/resource-call.ts'
import { malformed, readError } from '../client/response-body.ts'
import { parseRetryAfter } from '../client/retry-after.ts'
import { type ServerUrl, vetServer } from '../client/server-url.ts'
import { unreachable } from '../client/unreachable.ts'
import { pods } from '../objects/resource-types.ts'
import { PROTOCOL } from './channel-frame.ts'
import type { PodStreamOptions } from './pod-stream.ts'

export interface OpenChannel {
  /** Paused: nothing of it is lost until someone listens. */
  readonly socket: WebSocket
  readonly call: CallName
  readonly origin: string
}

type Options = PodStreamOptions & { readonly clock: Clock }

const OPEN_TIMEOUT_MS = 30_000
const MAX_PAYLOAD = 64 << 20

/** The handshake, once more after a 401: the token may just have been renewed. */
export async function openChannel(connection: Connection, options: Options): Promise<OpenChannel> {
  const { clock, openTimeoutMs = OPEN_TIMEOUT_MS, signal } = options
  const call = { verb: options.kind, target: targetOf(pods, { namespace: options.namespace, name: options.pod }) }
  const server = vetServer(connection.server)
  const path = pathOf(options)
  using scope = openScope({
    clock,
    timeoutMs: openTimeoutMs,
    timeoutError: () => new ThvError('kube_unreachable', `${call.verb} ${call.target}: not open within ${openTimeoutMs} ms`),
    signals: [signal],
  })
  for (let isFirst = true; ; isFirst = false) {
    const credentials = await credentialsOf(connection, server, scope.signal)
    try {
      const socket = await shakeHands({ server, path, credentials, call, options }, scope.signal)
      return { socket, call, origin: server.origin }
    } catch (error) {
      if (scope.signal.aborted) throw scope.signal.reason
      if (!(isFirst && error instanceof KubeApiError && error.status === 401)) throw error
      connection.auth.invalidate()
    }
  }
}

interface Handshake {
  readonly server: ServerUrl
  readonly path: string
  readonly credentials: Credentials
  readonly call: CallName
  readonly options: Options
}

function shakeHands({ server, path, credentials, call, options }: Handshake, signal: AbortSignal): Promise<WebSocket> {
  const { authorization, tls } = credentials
  return new Promise((resolve, reject) => {
    const socket = new WebSocket(server.origin.replace(/^http/, 'ws') + server.prefix + path, [PROTOCOL], {
      ...tlsOptions(tls),
      headers: { 'user-agent': 'toolhive-ts/0.1', ...(authorization !== undefined && { authorization }) },
      perMessageDeflate: false,
      maxPayload: options.maxPayload ?? MAX_PAYLOAD,
    })
    const settle = (then: () => void) => {
      signal.removeEventListener('abort', onAbort)
      then()
    }
    const onAbort = () => {
      settle(() => reject(signal.reason))
      socket.terminate()
    }
    signal.addEventListener('abort', onAbort, { once: true })

    socket.on('error', (error) => settle(() => reject(handshakeError(error, call, server.origin))))
    socket.on('upgrade', ({ socket: raw }: IncomingMessage) => raw.setKeepAlive(true, 15_000))
    socket.on('open', () => {
      socket.pause()
      socket.removeAllListeners('error').on('error', () => {}) // until the stream has its own, an error also closes
      settle(() => resolve(socket))
    })
    socket.on('unexpected-response', (_request, response: IncomingMessage) => {
      const retryAfterSeconds = parseRetryAfter(response.headers['retry-after'], options.clock.now())
      readError(response, { call, status: response.statusCode ?? 0, retryAfterSeconds }).then(
        (error) => settle(() => reject(error)),
        (error) => settle(() => reject(unreachable(call, server.origin, error))),
      )
    })
  })
}

/** `ws` checks the answer itself; what it does not like has no code of the system. */
function handshakeError(error: Error, call: CallName, origin: string): ThvError {
  const isOurs = !('code' in error) || typeof error.code !== 'string'
  return isOurs
    ? malformed(call, `no WebSocket with ${PROTOCOL} (Kubernetes 1.30 or later): ${error.message}`)
    : unreachable(call, origin, error)
}

function pathOf({ namespace, pod, container, kind, command = [], stdin, stdout, stderr, tty }: Options): string {
  if (kind === 'exec' && command.length === 0) throw badRequest(`pods/exec ${namespace}/${pod}`, 'a command is needed')
  if (kind === 'attach' && command.length > 0) throw badRequest(`pods/attach ${namespace}/${pod}`, 'attach takes no command')
  const query = new URLSearchParams({ container })
  for (const [name, wanted] of Object.entries({ stdin, stdout, stderr, tty })) {
    if (wanted === true) query.append(name, 'true')
  }
  for (const word of command) query.append('command', word)
  return `${objectPath(pods, { namespace, name: pod }, kind)}?${query}`
}
