import { connect, type Socket } from 'node:net'
import { createHttpServer, type HttpServer, type HttpServerOptions } from '../server/server.ts'

/** A server on 127.0.0.1 that keeps what was reported to it. */
export interface LoopbackServer extends AsyncDisposable {
  readonly server: HttpServer
  readonly port: number
  readonly url: string
  readonly errors: unknown[]
}

export async function startServer(
  handler: HttpServerOptions['handler'],
  options: Pick<HttpServerOptions, 'limits' | 'clock' | 'peers'> = {},
): Promise<LoopbackServer> {
  const errors: unknown[] = []
  const server = createHttpServer({
    handler,
    onError: (error) => errors.push(error),
    ...options,
  })
  const { port, url } = await server.listen({ host: '127.0.0.1', port: 0 })
  return { server, port, url, errors, [Symbol.asyncDispose]: () => server[Symbol.asyncDispose]() }
}

/** A client that sends exactly the given bytes, and keeps the answer. */
export interface RawClient extends Disposable {
  readonly socket: Socket
  /** All bytes so far, as Latin-1. */
  readonly received: string
  readonly ended: boolean
  readonly closed: boolean
  write(text: string | Uint8Array): void
  /** Resolves when the text has been received, rejects when the connection closes before. */
  until(text: string): Promise<string>
  untilClosed(): Promise<string>
}

export async function rawClient(port: number, options: { paused?: boolean } = {}): Promise<RawClient> {
  const socket = connect({ port, host: '127.0.0.1', allowHalfOpen: true })
  const state = { received: '', ended: false, closed: false }
  socket.on('error', () => {}) // a reset is seen as the end
  socket.on('end', () => {
    state.ended = true
  })
  socket.on('close', () => {
    state.closed = true
  })
  await new Promise<void>((resolve, reject) => {
    socket.once('connect', resolve)
    socket.once('error', reject)
  })
  if (!options.paused) socket.on('data', (chunk: Buffer) => (state.received += chunk.toString('latin1')))
  return {
    socket,
    get received() {
      return state.received
    },
    get ended() {
      return state.ended
    },
    get closed() {
      return state.closed
    },
    write: (text) => socket.write(text),
    async until(text) {
      await eventually(() => state.received.includes(text) || state.ended || state.closed)
      if (!state.received.includes(text)) throw new Error(`closed without ${JSON.stringify(text)}: ${JSON.stringify(state.received)}`)
      return state.received
    },
    async untilClosed() {
      await eventually(() => state.ended || state.closed)
      return state.received
    },
    [Symbol.dispose]: () => socket.destroy(),
  }
}

/** One request over a connection of its own: everything that comes until the server closes it. */
export async function rawExchange(port: number, text: string): Promise<string> {
  using client = await rawClient(port)
  client.write(text)
  return await client.untilClosed()
}

export function get(path: string, headers: readonly string[] = []): string {
  return ['GET ', path, ' HTTP/1.1\r\nHost: localhost\r\n', ...headers.map((line) => `${line}\r\n`), '\r\n'].join('')
}

export function post(path: string, body: string, headers: readonly string[] = []): string {
  const lines = [`POST ${path} HTTP/1.1`, 'Host: localhost', `Content-Length: ${Buffer.byteLength(body)}`, ...headers]
  return `${lines.join('\r\n')}\r\n\r\n${body}`
}

/** Polls, for what sockets bring about. */
export async function eventually(check: () => boolean, what = 'it'): Promise<void> {
  const limit = performance.now() + 60_000
  while (!check()) {
    if (performance.now() > limit) throw new Error(`${what} did not happen within 60 s`)
    await new Promise((resolve) => setTimeout(resolve, 2))
  }
}

/** Lets time pass, and sockets be read: on a busy machine the time may be over before this process looks at them. */
export function pause(ms: number): Promise<void> {
  return new Promise((resolve) => setTimeout(() => setImmediate(resolve), ms))
}
