import { createServer, type IncomingMessage, request, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { pipeline } from 'node:stream/promises'

export interface TokenForwarder extends AsyncDisposable {
  readonly url: string
}

/** Adds a bearer token to every request and changes nothing else, for clients that cannot log in. */
export async function startTokenForwarder(target: string, token: string): Promise<TokenForwarder> {
  const { hostname, port, pathname } = new URL(target)
  const server = createServer((incoming, outgoing) => {
    forward(incoming, outgoing).catch(() => outgoing.destroy()) // either side went away
  })

  async function forward(incoming: IncomingMessage, outgoing: ServerResponse): Promise<void> {
    const headers = [...incoming.rawHeaders, 'Authorization', `Bearer ${token}`]
    const sent = request({ hostname, port, path: incoming.url, method: incoming.method, headers, agent: false })
    outgoing.once('close', () => sent.destroy())
    const answered = new Promise<IncomingMessage>((resolve, reject) => sent.once('response', resolve).once('error', reject))
    const [answer] = await Promise.all([answered, pipeline(incoming, sent)])
    outgoing.writeHead(answer.statusCode ?? 502, answer.rawHeaders)
    outgoing.flushHeaders()
    await pipeline(answer, outgoing)
  }

  await new Promise<void>((resolve, reject) => server.once('error', reject).listen(0, '127.0.0.1', resolve))
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}${pathname}`,
    async [Symbol.asyncDispose]() {
      server.closeAllConnections()
      await new Promise((resolve) => server.close(resolve))
    },
  }
}
