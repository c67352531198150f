import type { ServerResponse } from 'node:http'
import { failure, type RequestId, type RpcError } from './json-rpc.ts'

export interface Refusal {
  readonly status: number
  readonly headers?: Record<string, string>
  readonly error?: RpcError
  readonly id?: RequestId
}

/** An answer of the HTTP edge: a status, and a JSON-RPC error as far as there is one. */
export function refuse(response: ServerResponse, refusal: Refusal): void {
  if (response.headersSent) {
    response.end()
    return
  }
  if (!refusal.error) {
    response.writeHead(refusal.status, refusal.headers).end()
    return
  }
  response.writeHead(refusal.status, { ...refusal.headers, 'content-type': 'application/json' })
  response.end(JSON.stringify(failure(refusal.id, refusal.error)))
}
