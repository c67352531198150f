import { createServer } from 'node:http'
import { announce } from '../proxy/listening.ts'

/* The floor: a server that answers every request with a constant body, whose size is the last part of the path. */

const bodies = new Map<string, Buffer>()

const server = createServer((request, response) => {
  const size = request.url?.slice(1) ?? ''
  let body = bodies.get(size)
  if (body === undefined) {
    body = Buffer.alloc(Number(size), 'x')
    bodies.set(size, body)
  }
  response.writeHead(200, ['Content-Type', 'application/json', 'Content-Length', size])
  response.end(body)
})

server.keepAliveTimeout = 600_000
announce(server)
