import { createSecureContext } from 'node:tls'
import type { Clock } from '@thv/kernel/clock'
import { abortable } from '@thv/kernel/deadline'
import { ThvError } from '@thv/kernel/errors'
import { Agent, type Dispatcher } from 'undici'
import type { HttpMethod } from './call-options.ts'
import { type CallScope, openScope } from './call-scope.ts'
import type { Connection, TlsSettings } from './connection.ts'
import { credentialsOf, tlsOptions } from './credentials.ts'
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
  /** Of an open body; instead of the limit of watches. 0: none. */
  readonly silenceMs?: number | undefined
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
  const agents = createAgentPair(options.watchBodyTimeoutMs)

  /** One exchange. `pick` takes what is wanted of the response here, so that a body that breaks off counts as a broken connection. */
  async function attempt<T>(call: Call, { pool, scope, pick }: Exchange<T>): Promise<T> {
    const { signal } = scope
    const { authorization, tls } = await credentialsOf(connection, server, signal)
    const headers = requestHeaders(call, authorization)
    try {
      const agent = agents.of(tls)[pool]
      const path = server.prefix + call.path
      const silence = call.silenceMs === undefined ? {} : { bodyTimeout: call.silenceMs }
      // undici closes the connection after a DELETE with a body unless the request is marked as an ordinary one.
      const parts = { method: call.method, headers, body: call.body ?? null, reset: false, signal, ...silence }
      const request = agent.request({ origin: server.origin, path, ...parts })
      const response = await abortable(request, signal, (late) => abandon(late.body))
      for (const text of parseWarnings(response.headers.warning)) options.onWarning?.(text)
      if (response.statusCode < 300) return await pick(response)
      const retryAfterSeconds = parseRetryAfter(response.headers['retry-after'], clock.now())
      throw await readError(response.body, { call, status: response.statusCode, retryAfterSeconds })
    } catch (error) {
      if (signal.aborted) throw signal.reason
      throw error instanceof ThvError ? error : unreachable(call, server.origin, error)
    }
  }

  function requestHeaders(call: Call, authorization: string | undefined): Record<string, string> {
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
        pool: 'requests',
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
        // Watches have a back-off of their own for broken connections, and need to see them.
        const { body } = await run(call, false, { pool: 'watches', scope, pick: async (response) => response })
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
      await agents.destroy()
    },
  }
}

/** Closes the connection. A destroyed body may still report an error, which has no consequence. */
function abandon(body: Dispatcher.ResponseData['body']): void {
  body.on('error', () => {}).destroy()
}

interface Exchange<T> {
  readonly pool: keyof Agents
  readonly scope: CallScope
  readonly pick: (response: Dispatcher.ResponseData) => Promise<T>
}

interface Agents {
  readonly requests: Agent
  readonly watches: Agent
}

/** The agents of the certificate in use. After a change the old ones end by themselves, with the last of their watches. */
function createAgentPair(watchBodyTimeoutMs: number): { of(tls: TlsSettings): Agents; destroy(): Promise<void> } {
  const open = new Set<Agent>()
  let current: { readonly cert: string | undefined; readonly agents: Agents } | undefined

  function retire(agent: Agent): void {
    const forget = () => open.delete(agent)
    agent.close().then(forget, forget)
  }

  return {
    of(tls) {
      if (current !== undefined && current.cert === tls.cert) return current.agents
      // Throws where the certificate is none: then those before stay, for when it is put right.
      const agents = createAgents(tls, watchBodyTimeoutMs)
      if (current !== undefined) for (const agent of Object.values(current.agents)) retire(agent)
      current = { cert: tls.cert, agents }
      for (const agent of Object.values(agents)) open.add(agent)
      return agents
    },
    async destroy() {
      await Promise.all([...open].map((agent) => agent.destroy()))
    },
  }
}

/**
 * Two pools: calls share a few connections, each watch has one of its own. HTTP/1.1 on both, since with h2 one dead connection
 * would silence all watches at once. Limits on headers and bodies of calls are the scope's business; silence of a watch is undici's.
 */
function createAgents(tls: TlsSettings, watchBodyTimeoutMs: number): Agents {
  const { ca, cert, key, ...checks } = tlsOptions(tls)
  const connect = {
    ...checks,
    // One for all connections: each would make its own, which takes time and 30 KB.
    ...((ca ?? cert) !== undefined && { secureContext: createSecureContext({ ca, cert, key }) }),
    timeout: CONNECT_TIMEOUT_MS,
    keepAlive: true,
    keepAliveInitialDelay: 15_000,
  }
  return {
    requests: new Agent({ allowH2: false, connect, connections: 16, headersTimeout: 0, bodyTimeout: 0 }),
    watches: new Agent({ allowH2: false, connect, headersTimeout: 0, bodyTimeout: watchBodyTimeoutMs }),
  }
}
