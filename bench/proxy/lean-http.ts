import { randomUUID } from 'node:crypto'
import { createServer, type ServerResponse } from 'node:http'
import { answer, type Call } from './lean-answers.ts'
import { announce } from './listening.ts'

/* The lean server over streamable HTTP. Sessions are names: nothing is kept for them. */

let requests = 0

const server = createServer((request, response) => {
  if (request.method === 'GET' && request.url === '/requests') {
    response.end(String(requests))
    return
  }
  requests++
  if (request.method === 'DELETE') response.writeHead(204).end()
  else if (request.method !== 'POST') response.writeHead(405, ['allow', 'POST, DELETE', 'content-length', '0']).end()
  else {
    const chunks: Buffer[] = []
    request.on('data', (chunk: Buffer) => chunks.push(chunk))
    request.on('end', () =>
      reply(response, answer((chunks[1] === undefined ? chunks[0] : Buffer.concat(chunks))?.toString('utf8') ?? 'null')),
    )
  }
})

function reply(response: ServerResponse, { method, tool, response: text }: Call): void {
  if (text === undefined) {
    response.writeHead(202, ['content-length', '0']).end()
    return
  }
  const session = method === 'initialize' ? ['mcp-session-id', randomUUID()] : []
  if (tool === 'echo_stream') {
    response.writeHead(200, ['content-type', 'text/event-stream', 'cache-control', 'no-store']).end(`event: message\ndata: ${text}\n\n`)
    return
  }
  const body = Buffer.from(text)
  response.writeHead(200, ['content-type', 'application/json', 'content-length', String(body.length), ...session]).end(body)
}

server.keepAliveTimeout = 600_000
announce(server)
