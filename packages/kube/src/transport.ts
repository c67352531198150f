import type { Clock } from '@thv/kernel/clock'
import { ThvError } from '@thv/kernel/errors'
import { Agent, type Dispatcher } from 'undici'
import type { HttpMethod } from './call-options.ts'
import { type CallScope, openScope, orAbort } from './call-scope.ts'
import type { Connection } from './connection.ts'
import type { CallName } from './kube-api-error.ts'
import { readBody, readError } from './response-body.ts'
import type { Retrier } from './retrier.ts'
import { parseRetryAfter } from './retry-after.ts'
import { vetServer } from './server-url.ts'
import { unreachable } from './unreachable.ts'
import { parseWarnings } from './warning-header.ts'

export interface Call extends CallName {
  readonly method: HttpMethod
  /** With its query, without the server's own path prefix. */
  readonly path: string
  readonly body?: string | Uint8Array | undefined
  readonly contentType?: string | undefined
  readonly accept?: string | undefined
  readonly signal?: AbortSignal | undefined
  readonly timeoutMs?: number | undefined
}

export interface Answer {
  readonly status: number
  readonly headers: Readonly<Record<string, string | string[] | undefined>>
  readonly body: Buffer
}

/** A response whose body is still coming; `scope` ends it and must be disposed. */
export interface OpenAnswer extends Disposable {
  readonly body: Dispatcher.ResponseData['body']
  readonly scope: CallScope
  readonly origin: string
}

export interface TransportOptions {
  readonly userAgent: string
  readonly clock: Clock
  readonly maxBodyBytes: number
  readonly watchBodyTimeoutMs: number
  readonly retrier: Retrier
  readonly onWarning: ((text: string) => void) | undefined
}

export interface Transport {
  /** Sends a call, with retries, and reads the whole answer. Statuses of 300 and above throw KubeApiError. */
  send(call: Call): Promise<Answer>
  /** As `send`, but over a watch connection and without reading the body. */
  open(call: Call): Promise<OpenAnswer>
  close(): Promise<void>
}

const DEFAULT_TIMEOUT_MS = 30_000
const CONNECT_TIMEOUT_MS = 5_000

export function createTransport(connection: Connection, options: TransportOptions): Transport {
  const { clock, retrier } = options
  const server = vetServer(connection.server)
  const closing = new AbortController()
  const agents = createAgents(connection, options.watchBodyTimeoutMs)

  /** One exchange. `pick` takes what is wanted of the response here, so that a body that breaks off counts as a broken connection. */
  async function attempt<T>(call: Call, { agent, scope, pick }: Exchange<T>): Promise<T> {
    const { signal } = scope
    const headers = await requestHeaders(call, signal)
    try {
      const path = server.prefix + call.path
      const request = agent.request({ origin: server.origin, path, method: call.method, headers, body: call.body ?? null, signal })
      const response = await orAbort(request, signal, (late) => abandon(late.body))
      for (const text of parseWarnings(response.headers.warning)) options.onWarning?.(text)
      if (response.statusCode < 300) return await pick(response)
      const retryAfterSeconds = parseRetryAfter(response.headers['retry-after'], clock.now())
      throw await readError(response.body, { call, status: response.statusCode, retryAfterSeconds })
    } catch (error) {
      if (signal.aborted) throw signal.reason
      throw error instanceof ThvError ? error : unreachable(call, server.origin, error)
    }
  }

  async function requestHeaders(call: Call, signal: AbortSignal): Promise<Record<string, string>> {
    signal.throwIfAborted()
    const authorization = await orAbort(connection.auth.header(signal), signal)
    if (authorization !== undefined && !server.mayCarryCredentials) {
      throw new ThvError('kubeconfig_invalid', `${server.origin}: credentials are not sent over plain http except to this machine`)
    }
    return {
      accept: call.accept ?? 'application/json',
      'user-agent': options.userAgent,
      ...(authorization !== undefined && { authorization }),
      ...(call.body !== undefined && { 'content-type': call.contentType ?? 'application/json' }),
    }
  }

  function run<T>(call: Call, idempotent: boolean, exchange: Exchange<T>): Promise<T> {
    const { scope } = exchange
    return retrier.run({ scope, idempotent, onUnauthorized: () => connection.auth.invalidate(), attempt: () => attempt(call, exchange) })
  }

  function scopeFor(call: Call): CallScope {
    const timeoutMs = call.timeoutMs ?? DEFAULT_TIMEOUT_MS
    return openScope({
      clock,
      timeoutMs,
      timeoutError: () =>
        new ThvError('kube_unreachable', `${call.verb} ${call.target}: no answer from ${server.origin} within ${timeoutMs} ms`, {
          details: { timeoutMs },
        }),
      signals: [call.signal, closing.signal],
    })
  }

  return {
    async send(call) {
      using scope = scopeFor(call)
      return await run(call, call.method === 'GET', {
        agent: agents.requests,
        scope,
        pick: async ({ statusCode, headers, body }) => ({
          status: statusCode,
          headers,
          body: await readBody(body, options.maxBodyBytes, call),
        }),
      })
    },

    async open(call) {
      const scope = scopeFor(call)
      try {
        // Whoever watches has a back-off of its own for broken connections, and wants to know of them.
        const { body } = await run(call, false, { agent: agents.watches, scope, pick: async (response) => response })
        scope.lift()
        return {
          body,
          scope,
          origin: server.origin,
          [Symbol.dispose]() {
            scope[Symbol.dispose]()
            abandon(body)
          },
        }
      } catch (error) {
        scope[Symbol.dispose]()
        throw error
      }
    },

    async close() {
      closing.abort(new ThvError('aborted', 'the Kubernetes client was closed'))
      await Promise.all([agents.requests.destroy(), agents.watches.destroy()])
    },
  }
}

/** Closes the connection. A destroyed body may still report an error; nobody waits for it any more. */
function abandon(body: Dispatcher.ResponseData['body']): void {
  body.on('error', () => {}).destroy()
}

interface Exchange<T> {
  readonly agent: Agent
  readonly scope: CallScope
  readonly pick: (response: Dispatcher.ResponseData) => Promise<T>
}

/**
 * Two pools: calls share a few connections, each watch has one of its own. HTTP/1.1 on both, since with h2 one dead connection
 * would silence all watches at once. Limits on headers and bodies of calls are the scope's business; silence of a watch is undici's.
 */
function createAgents({ tls }: Connection, watchBodyTimeoutMs: number): { requests: Agent; watches: Agent } {
  const connect = {
    ...(tls.ca !== undefined && { ca: tls.ca }),
    ...(tls.cert !== undefined && { cert: tls.cert }),
    ...(tls.key !== undefined && { key: tls.key }),
    ...(tls.serverName !== undefined && { servername: tls.serverName }),
    ...(tls.insecureSkipVerify === true && { rejectUnauthorized: false }),
    timeout: CONNECT_TIMEOUT_MS,
    keepAlive: true,
    keepAliveInitialDelay: 15_000,
  }
  return {
    requests: new Agent({ allowH2: false, connect, connections: 16, headersTimeout: 0, bodyTimeout: 0 }),
    watches: new Agent({ allowH2: false, connect, headersTimeout: 0, bodyTimeout: watchBodyTimeoutMs }),
  }
}
