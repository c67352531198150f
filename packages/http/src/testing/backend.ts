import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http'
import { createServer as createTlsServer } from 'node:https'
import type { AddressInfo, Socket } from 'node:net'

export interface SeenRequest {
  readonly method: string
  readonly url: string
  readonly headers: IncomingMessage['headers']
  readonly rawHeaders: readonly string[]
  readonly body: string
}

/** A plain Node server on 127.0.0.1 that stands for a backend; it keeps what it was sent. */
export interface Backend extends AsyncDisposable {
  readonly url: string
  readonly port: number
  readonly requests: SeenRequest[]
  readonly sockets: ReadonlySet<Socket>
  /** Connections ever opened. */
  readonly connections: number
}

export type BackendHandler = (request: SeenRequest, response: ServerResponse) => void | Promise<void>

export async function startBackend(handler: BackendHandler, tls?: { certPem: string; keyPem: string }): Promise<Backend> {
  const requests: SeenRequest[] = []
  const sockets = new Set<Socket>()
  let connections = 0
  const listener = async (incoming: IncomingMessage, response: ServerResponse) => {
    const chunks: Buffer[] = []
    for await (const chunk of incoming) chunks.push(chunk)
    const { method = '', url = '', headers, rawHeaders } = incoming
    const request = { method, url, headers, rawHeaders, body: Buffer.concat(chunks).toString('latin1') }
    requests.push(request)
    await handler(request, response)
  }
  const server: Server = tls ? createTlsServer({ cert: tls.certPem, key: tls.keyPem }, listener) : createServer(listener)
  server.on('connection', (socket: Socket) => {
    connections++
    sockets.add(socket)
    socket.on('error', () => {})
    socket.on('close', () => sockets.delete(socket))
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const { port } = server.address() as AddressInfo
  return {
    url: `${tls ? 'https' : 'http'}://127.0.0.1:${port}`,
    port,
    requests,
    sockets,
    get connections() {
      return connections
    },
    async [Symbol.asyncDispose]() {
      for (const socket of sockets) socket.destroy()
      await new Promise((resolve) => server.close(resolve))
    },
  }
}
