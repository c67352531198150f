import { createServer, type IncomingMessage, type RequestListener, type Server, type ServerResponse } from 'node:http'
import { createServer as createTlsServer } from 'node:https'
import type { AddressInfo, Socket } from 'node:net'
import { type AuthSource, type Connection, noAuth } from '../client/connection.ts'

export interface SeenRequest {
  readonly method: string
  readonly url: string
  readonly headers: IncomingMessage['headers']
  readonly body: string
}

export type Handler = (request: SeenRequest, response: ServerResponse, index: number) => void | Promise<void>

/** A server on loopback for tests, plain or with TLS; it keeps what it was sent. */
export interface LoopbackServer extends AsyncDisposable {
  readonly url: string
  readonly requests: SeenRequest[]
  readonly sockets: ReadonlySet<Socket>
  connection(auth?: AuthSource): Connection
}

export async function startLoopback(handler: Handler, tls?: { cert: string; key: string; ca?: string }): Promise<LoopbackServer> {
  const requests: SeenRequest[] = []
  const sockets = new Set<Socket>()
  const listener: RequestListener = async (incoming, response) => {
    const chunks: Buffer[] = []
    for await (const chunk of incoming) chunks.push(chunk)
    const { method = '', url = '', headers } = incoming
    const request = { method, url, headers, body: Buffer.concat(chunks).toString('utf8') }
    requests.push(request)
    await handler(request, response, requests.length - 1)
  }
  const server: Server = tls
    ? createTlsServer({ ...tls, ...(tls.ca && { requestCert: true, rejectUnauthorized: true }) }, listener)
    : createServer(listener)
  server.on(tls ? 'secureConnection' : 'connection', (socket: Socket) => {
    sockets.add(socket)
    socket.on('close', () => sockets.delete(socket))
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const url = `${tls ? 'https' : 'http'}://127.0.0.1:${(server.address() as AddressInfo).port}`
  return {
    url,
    requests,
    sockets,
    connection: (auth = noAuth) => ({ server: url, tls: {}, auth }),
    async [Symbol.asyncDispose]() {
      server.closeAllConnections()
      await new Promise((resolve) => server.close(resolve))
    },
  }
}

export function sendJson(response: ServerResponse, status: number, body: unknown, headers: Record<string, string> = {}): void {
  response.writeHead(status, { 'content-type': 'application/json', ...headers }).end(JSON.stringify(body))
}

export function sendStatus(
  response: ServerResponse,
  code: number,
  extra: { reason?: string; headers?: Record<string, string> } = {},
): void {
  const { reason = 'Test', headers } = extra
  sendJson(response, code, { kind: 'Status', apiVersion: 'v1', status: 'Failure', reason, message: `said ${code}`, code }, headers)
}

/** Polls, for what other processes or sockets bring about. */
export async function eventually(check: () => boolean): Promise<void> {
  const limit = performance.now() + 60_000
  while (!check()) {
    if (performance.now() > limit) throw new Error('did not happen within 60 s')
    await new Promise((resolve) => setTimeout(resolve, 5))
  }
}
