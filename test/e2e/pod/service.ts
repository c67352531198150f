import { once } from 'node:events'
import { createServer, request } from 'node:http'

export interface TestService extends AsyncDisposable {
  readonly port: number
}

/** Stands for a Service of the cluster: whatever name it was called by, the server behind it sees its own. */
export async function serviceBefore(target: string): Promise<TestService> {
  const { hostname, port, host } = new URL(target)
  const server = createServer((asked, answer) => {
    const { method, url, headers } = asked
    const forwarded = request({ hostname, port, path: url, method, headers: { ...headers, host } }, (got) => {
      answer.writeHead(got.statusCode ?? 502, got.headers)
      got.pipe(answer)
    })
    forwarded.on('error', () => answer.destroy())
    answer.on('close', () => forwarded.destroy())
    asked.pipe(forwarded)
  }).listen(0, '127.0.0.1')
  await once(server, 'listening')
  const address = server.address()
  if (address === null || typeof address === 'string') throw new TypeError('no port')
  return {
    port: address.port,
    async [Symbol.asyncDispose]() {
      server.close()
      server.closeAllConnections()
    },
  }
}
