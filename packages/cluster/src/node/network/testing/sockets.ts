import { once } from 'node:events'
import { type AddressInfo, connect, createServer, type Server, type Socket } from 'node:net'

/** A TCP server on a loopback address for one test. */
export interface TestServer {
  readonly address: string
  readonly port: number
  readonly sockets: Set<Socket>
  accepted: number
  /** Ends its connections too, as a killed process would. */
  close(): Promise<void>
}

export async function listenOn(address: string, onConnection: (socket: Socket) => void, port = 0): Promise<TestServer> {
  const sockets = new Set<Socket>()
  const server: Server = createServer({ allowHalfOpen: true }, (socket) => {
    result.accepted++
    sockets.add(socket)
    socket.on('error', () => undefined).once('close', () => sockets.delete(socket))
    onConnection(socket)
  })
  server.listen(port, address)
  await once(server, 'listening')
  const result: TestServer = {
    address,
    port: (server.address() as AddressInfo).port,
    sockets,
    accepted: 0,
    async close() {
      for (const socket of sockets) socket.resetAndDestroy()
      await new Promise((resolve) => server.close(resolve))
    },
  }
  return result
}

/** Answers with its name when a connection opens, then sends back what comes. */
export function echoNamed(name: string): (socket: Socket) => void {
  return (socket) => {
    socket.write(`${name}\n`)
    socket.pipe(socket)
  }
}

export async function open(host: string, port: number): Promise<Socket> {
  const socket = connect({ host, port, allowHalfOpen: true })
  socket.on('error', () => undefined)
  await once(socket, 'connect')
  return socket
}

/** All bytes to the end; rejects when the connection breaks. The socket stays open for writing, which an iterator would end. */
export function readAll(socket: Socket): Promise<string> {
  const chunks: Buffer[] = []
  return new Promise((resolve, reject) => {
    socket.on('data', (chunk: Buffer) => void chunks.push(chunk))
    socket.once('end', () => resolve(Buffer.concat(chunks).toString()))
    socket.once('error', reject)
  })
}

/** The first line, from which the test knows who answered. */
export async function firstLine(socket: Socket): Promise<string> {
  let text = ''
  while (!text.includes('\n')) {
    const [chunk] = (await Promise.race([once(socket, 'data'), once(socket, 'close').then(() => ['closed\n'])])) as [Buffer | string]
    text += chunk.toString()
  }
  return text.slice(0, text.indexOf('\n'))
}

/** The server at this address now: its name, or `closed`. */
export async function whoAnswers(host: string, port: number): Promise<string> {
  const socket = connect({ host, port })
  socket.on('error', () => undefined)
  try {
    return await firstLine(socket)
  } catch (error) {
    return (error as NodeJS.ErrnoException).code ?? String(error)
  } finally {
    socket.destroy()
  }
}
