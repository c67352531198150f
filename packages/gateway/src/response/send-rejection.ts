import type { Exchange } from '@thv/http/server/exchange'
import { sendBytes } from '@thv/http/server/respond'
import { type RequestId, serialise } from '@thv/mcp/json-rpc'
import { messageFrame } from '@thv/mcp/sse-encoder'
import { answerOf, type Rejection, responseOf } from '@thv/mcp/wire-errors'
import { acceptedForms } from './accepted-forms.ts'

/** Answers with the HTTP status of the error. Without an id the error names none. */
export function sendRejection(exchange: Exchange, rejection: Rejection, id?: RequestId): void {
  const { status, headers, body } = answerOf(rejection, id)
  const { 'content-type': type = 'application/json', ...rest } = headers
  sendBytes(exchange, status, { type, body: Buffer.from(body), headers: Object.entries(rest).flat() })
}

/** Answers as the handler of the method would: 200, and the error inside; as an event if the client takes nothing else. */
export function sendInBand(exchange: Exchange, rejection: Rejection, id: RequestId): void {
  const text = serialise(responseOf(rejection, id))
  const { json } = acceptedForms(exchange.headers['accept'])
  const body = Buffer.from(json ? text : messageFrame(text))
  sendBytes(exchange, 200, { type: json ? 'application/json' : 'text/event-stream', body, headers: NO_STORE })
}

const NO_STORE = ['Cache-Control', 'no-store']
