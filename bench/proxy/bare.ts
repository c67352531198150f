import { createServer } from 'node:http'
import { type Dispatcher, Pool } from 'undici'
import { announce } from './listening.ts'

/* The floor on this runtime: bytes in, bytes out, and no idea of what they mean. */

const backend = new Pool(process.env['THV_BACKEND'] ?? '', { connections: 128, allowH2: false })

const server = createServer((request, response) => {
  const chunks: Buffer[] = []
  const { method = 'GET', url: path = '/' } = request
  const { host, connection, 'content-length': length, ...headers } = request.headers
  const handler: Dispatcher.DispatchHandler = {
    onRequestStart() {},
    onResponseStart(_controller, status, { connection: _, 'keep-alive': __, 'transfer-encoding': ___, ...rest }) {
      response.writeHead(status, rest)
    },
    onResponseData: (_controller, chunk) => void response.write(chunk),
    onResponseEnd: () => void response.end(),
    onResponseError: () => void response.destroy(),
  }
  request.on('data', (chunk: Buffer) => chunks.push(chunk))
  request.on('end', () => {
    const body = chunks[1] === undefined ? (chunks[0] ?? null) : Buffer.concat(chunks)
    backend.dispatch({ method: method as Dispatcher.HttpMethod, path, headers, body }, handler)
  })
})

server.keepAliveTimeout = 600_000
announce(server)
