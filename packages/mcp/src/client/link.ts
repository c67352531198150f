import type { Cancellation } from '@thv/http/cancellation'
import type { HeaderMap } from '@thv/http/header-map'
import type { ThvError } from '@thv/kernel/errors'
import {
  isErrorResponse,
  type JsonObject,
  type JsonRpcNotification,
  type JsonRpcRequest,
  type JsonRpcResponse,
  type RequestId,
} from '../json-rpc.ts'
import type { ParsedBody, ParsedMessage } from '../parse-body.ts'
import { McpErrorResponse, protocolError } from './client-errors.ts'
import { httpError } from './http-failure.ts'
import type { ClientTransport } from './mcp-client.ts'

/** One way to a server in one era: it carries messages and knows nothing of what they mean. */
export interface Link {
  readonly transport: ClientTransport
  /**
   * Sends a request and waits for its answer. Messages on its own stream go to `receive`; those of a shared stream go where the link was
   * told when it was made. Rejects when there is no answer; an answer of whatever status is an answer.
   */
  request(message: JsonRpcRequest, context: LinkContext): Promise<LinkAnswer>
  send(message: JsonRpcNotification | JsonRpcResponse, signal: AbortSignal): Promise<void>
  /** Ends the requests that are under way. */
  abandon?(reason: ThvError): void
  /** Never rejects. */
  close(): Promise<void>
}

export interface LinkContext {
  readonly signal: AbortSignal
  /** Ends the request instead of the signal. */
  readonly cancellation?: Cancellation | undefined
  receive(message: ParsedMessage): void
  /** `stream` for what stays open, so that it takes no connection away from others. */
  readonly purpose?: 'request' | 'stream'
  /** On top of those that the link derives from the message. Without HTTP there are none. */
  readonly headers?: Readonly<Record<string, string>>
  /** The message is written already. A link that can gives a plain result back as text. */
  readonly written?: Written | undefined
}

/** For a request that needs none of its own. */
export const NO_HEADERS: Readonly<Record<string, string>> = {}

/** A request as text. */
export interface Written {
  readonly text: string
  /** The id that the response gets. */
  readonly id: RequestId
}

export interface LinkAnswer {
  /** 200 where there is no HTTP. */
  readonly status: number
  readonly headers: HeaderMap
  /** Undefined when it was empty. */
  readonly body: ParsedBody | undefined
  /** The response to a request that was written, under the id that was asked for. Then there is no body. */
  readonly text?: string | undefined
}

/** The response in an answer. Throws what else the answer says: other credentials, come back later, or nothing that can be understood. */
export function responseOf(answer: LinkAnswer, request: JsonRpcRequest): JsonRpcResponse {
  const { status, body } = answer
  const failure = httpError(answer)
  if (failure?.code === 'mcp_auth_required') throw failure
  if (body?.kind === 'response' && isAnswerTo(request, body.message)) return body.message
  if (failure) throw failure
  if (body === undefined) throw protocolError(`answered ${request.method} with nothing (HTTP ${status})`)
  if (body.kind === 'invalid') throw protocolError(`answered ${request.method} with what is no message: ${body.detail}`)
  throw protocolError(`answered ${request.method} with a message that is not its answer`)
}

/** An error without id answers what the server could not read, so on a stream of its own it belongs to the request. */
export function isAnswerTo(request: JsonRpcRequest, response: JsonRpcResponse): boolean {
  return response.id === request.id || (response.id === undefined && isErrorResponse(response))
}

/** The result in a response; throws its error. */
export function resultOf(response: JsonRpcResponse, status: number): JsonObject {
  if (isErrorResponse(response)) throw new McpErrorResponse(response.error, status)
  const { result } = response
  if (typeof result !== 'object' || result === null || Array.isArray(result)) throw protocolError('sent a result that is no object')
  return result as JsonObject
}
