import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import { createServer as createTlsServer } from 'node:https'
import type { AddressInfo, Socket } from 'node:net'
import type { Duplex } from 'node:stream'
import { type WebSocket, WebSocketServer } from 'ws'
import { type AuthSource, type Connection, noAuth } from '../client/connection.ts'

/** One attached client, seen from the server. */
export interface PodSession {
  readonly socket: WebSocket
  /** Below the WebSocket: for what a network does. */
  readonly raw: Duplex
  readonly url: URL
  readonly headers: IncomingMessage['headers']
  readonly stdin: Buffer[]
  stdinEnded: boolean
  pings: number
  send(channel: number, bytes: string | Uint8Array): void
  status(status: object): void
}

export type Refusal = { status: number; body?: unknown; headers?: Record<string, string>; hang?: boolean }

/** The server's side of v5.channel.k8s.io, as far as attach and exec use it, on plain HTTP or TLS. */
export interface PodServer extends AsyncDisposable {
  readonly url: string
  readonly sessions: PodSession[]
  readonly sockets: ReadonlySet<Socket>
  connection(auth?: AuthSource, tls?: Connection['tls']): Connection
}

export interface PodServerOptions {
  readonly tls?: { cert: string; key: string; ca?: string }
  /** Response instead of an upgrade. */
  readonly refuse?: (request: IncomingMessage) => Refusal | undefined
  readonly onSession?: (session: PodSession) => void
  readonly protocol?: string | false
  /** Upgrades are neither answered nor refused. */
  readonly silent?: boolean
}

export async function startPodServer(options: PodServerOptions = {}): Promise<PodServer> {
  const { tls, protocol = 'v5.channel.k8s.io' } = options
  const sessions: PodSession[] = []
  const sockets = new Set<Socket>()
  const upgrades = new WebSocketServer({ noServer: true, autoPong: true, handleProtocols: () => protocol, maxPayload: 64 << 20 })
  const noPage = (_request: IncomingMessage, response: ServerResponse) => void response.writeHead(400).end('upgrade required')
  const server = tls
    ? createTlsServer({ ...tls, ...(tls.ca && { requestCert: true, rejectUnauthorized: true }) }, noPage)
    : createServer(noPage)
  server.on('connection', (socket: Socket) => {
    sockets.add(socket)
    socket.on('close', () => sockets.delete(socket))
  })
  server.on('upgrade', (request: IncomingMessage, raw: Duplex, head: Buffer) => {
    raw.on('error', () => {})
    if (options.silent) {
      raw.resume().on('end', () => raw.destroy())
      return
    }
    const refusal = options.refuse?.(request)
    if (refusal) {
      const text = typeof refusal.body === 'string' ? refusal.body : JSON.stringify(refusal.body ?? {})
      const headers = { 'content-length': String(Buffer.byteLength(text)), connection: 'close', ...refusal.headers }
      const lines = Object.entries(headers).map(([name, value]) => `${name}: ${value}\r\n`)
      raw.write(`HTTP/1.1 ${refusal.status} Refused\r\n${lines.join('')}\r\n${text}`)
      if (refusal.hang) raw.resume().on('end', () => raw.destroy())
      else raw.end()
      return
    }
    upgrades.handleUpgrade(request, raw, head, (socket) => {
      const session = sessionOf(socket, raw, request)
      sessions.push(session)
      options.onSession?.(session)
    })
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const url = `${tls ? 'https' : 'http'}://127.0.0.1:${(server.address() as AddressInfo).port}`
  return {
    url,
    sessions,
    sockets,
    connection: (auth = noAuth, clientTls = {}) => ({ server: url, tls: clientTls, auth }),
    async [Symbol.asyncDispose]() {
      for (const socket of sockets) socket.destroy()
      await new Promise((resolve) => server.close(resolve))
    },
  }
}

function sessionOf(socket: WebSocket, raw: Duplex, request: IncomingMessage): PodSession {
  const send = (channel: number, bytes: string | Uint8Array) => socket.send(Buffer.concat([Buffer.from([channel]), Buffer.from(bytes)]))
  const session: PodSession = {
    socket,
    raw,
    url: new URL(request.url ?? '', 'http://pod'),
    headers: request.headers,
    stdin: [],
    stdinEnded: false,
    pings: 0,
    send,
    status: (status) => send(3, JSON.stringify(status)),
  }
  socket.on('error', () => {})
  socket.on('ping', () => {
    session.pings++
  })
  socket.on('message', (data) => {
    const frame = data as Buffer
    if (frame[0] === 0) session.stdin.push(frame.subarray(1))
    if (frame[0] === 255 && frame[1] === 0) session.stdinEnded = true
  })
  return session
}

export const success = { metadata: {}, status: 'Success' }
