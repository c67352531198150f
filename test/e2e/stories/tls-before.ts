import { type AddressInfo, connect as connectTcp } from 'node:net'
import { createServer as createTlsServer } from 'node:tls'
import type { Certificate } from '@thv/testkit/cluster/identity/certificate'

/** A server that ends TLS in front of one that has none. */
export async function tlsBefore(url: string, { address, certificate }: { address: string; certificate: Certificate }) {
  const { port, pathname } = new URL(url)
  const server = createTlsServer({ cert: certificate.certPem, key: certificate.keyPem }, (socket) => {
    const behind = connectTcp(Number(port), address)
    for (const [from, to] of [
      [socket, behind],
      [behind, socket],
    ] as const) {
      from.pipe(to)
      from.on('error', () => to.destroy())
    }
  })
  const sockets = new Set<{ destroy(): void }>()
  server.on('connection', (socket) => sockets.add(socket))
  await new Promise<void>((resolve) => server.listen(0, address, resolve))
  return {
    url: `https://${address}:${(server.address() as AddressInfo).port}${pathname}`,
    async [Symbol.asyncDispose]() {
      for (const socket of sockets) socket.destroy()
      await new Promise((resolve) => server.close(resolve))
    },
  }
}
