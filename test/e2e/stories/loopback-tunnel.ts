import { once } from 'node:events'
import { type AddressInfo, connect, createServer, type Socket } from 'node:net'

/** A port of this machine's loopback that leads to another address, as `kubectl port-forward` gives its user one. */
export interface LoopbackTunnel extends AsyncDisposable {
  readonly origin: string
  /** Until then connections are closed. Servers that must know their own address are made in between. */
  leadTo(target: URL): void
}

export async function openTunnel(): Promise<LoopbackTunnel> {
  const sockets = new Set<Socket>()
  let target: URL | undefined
  const keep = (socket: Socket) => {
    sockets.add(socket)
    socket.once('close', () => sockets.delete(socket))
  }
  const listener = createServer((inner) => {
    if (target === undefined) return void inner.destroy()
    const outer = connect(Number(target.port), target.hostname)
    for (const [socket, other] of [
      [inner, outer],
      [outer, inner],
    ] as const) {
      keep(socket)
      socket.pipe(other)
      socket.once('error', () => other.destroy())
      socket.once('close', () => other.destroy())
    }
  })
  listener.listen(0, '127.0.0.1')
  await once(listener, 'listening')
  return {
    origin: `http://127.0.0.1:${(listener.address() as AddressInfo).port}`,
    leadTo: (found) => {
      target = found
    },
    async [Symbol.asyncDispose]() {
      const closed = once(listener, 'close')
      listener.close()
      for (const socket of sockets) socket.destroy()
      await closed
    },
  }
}
