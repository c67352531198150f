import { connect, createServer, type Server, type Socket } from 'node:net'
import { type SocketTable, systemSocketTable } from './socket-table.ts'

export interface PeerLookupOptions {
  readonly platform?: NodeJS.Platform
  readonly table?: SocketTable
}

/**
 * Why the owners of loopback connections cannot be found on this system; undefined when they can. Tried on a connection of its own,
 * because some systems have the kernel's list and leave it empty.
 */
export async function peerLookupProblem(options: PeerLookupOptions = {}): Promise<string | undefined> {
  const { platform = process.platform, table = systemSocketTable } = options
  if (platform !== 'linux') return `the owner of a connection cannot be looked up on ${platform}`
  const server = createServer((socket) => socket.on('error', () => {}))
  let client: Socket | undefined
  try {
    client = await connection(server)
    const { localAddress = '', localPort = 0, remoteAddress = '', remotePort = 0 } = client
    const owner = await table.ownerOf({ localAddress, localPort, remoteAddress, remotePort })
    return owner === process.getuid?.() ? undefined : 'the list of TCP sockets does not name the owner of a connection'
  } catch (error) {
    return `the list of TCP sockets cannot be read: ${error instanceof Error ? error.message : error}`
  } finally {
    client?.destroy()
    server.close()
  }
}

function connection(server: Server): Promise<Socket> {
  return new Promise((resolve, reject) => {
    server.once('error', reject)
    server.listen(0, '127.0.0.1', () => {
      const bound = server.address()
      const client = connect({ host: '127.0.0.1', port: typeof bound === 'object' && bound !== null ? bound.port : 0 })
      client.once('error', reject).once('connect', () => resolve(client))
    })
  })
}
