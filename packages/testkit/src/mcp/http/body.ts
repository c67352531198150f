import type { IncomingMessage } from 'node:http'
import { asMessage, INVALID_REQUEST, PARSE_ERROR, RpcError, type RpcMessage } from '../wire/json-rpc.ts'

/** Reads one JSON-RPC message. Throws with the HTTP status to answer with. Batches are refused in every revision. */
export async function readMessage(request: IncomingMessage, maxBytes: number): Promise<RpcMessage> {
  if (!/^application\/json\b/i.test(request.headers['content-type'] ?? '')) {
    throw new RpcError(INVALID_REQUEST, 'Content-Type must be application/json', { status: 415 })
  }
  const value = parse(await readText(request, maxBytes))
  const message = asMessage(value)
  if (!message) throw new RpcError(INVALID_REQUEST, 'Not a single JSON-RPC message', { status: 400 })
  return message
}

async function readText(request: IncomingMessage, maxBytes: number): Promise<string> {
  const chunks: Buffer[] = []
  let size = 0
  for await (const chunk of request as AsyncIterable<Buffer>) {
    size += chunk.length
    if (size > maxBytes) throw new RpcError(INVALID_REQUEST, 'Request body too large', { status: 413 })
    chunks.push(chunk)
  }
  return Buffer.concat(chunks).toString('utf8')
}

function parse(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    throw new RpcError(PARSE_ERROR, 'Parse error', { status: 400 })
  }
}
