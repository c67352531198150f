import type { HttpReply } from '@thv/gateway/response/reply'
import { wireErrors } from '@thv/kernel/error-registry'
import { META } from '@thv/mcp/envelope'
import { isErrorResponse, type RequestId, resultResponse, serialise, spliceId } from '@thv/mcp/json-rpc'
import { spliceMember } from '@thv/mcp/json-splice'
import { NOTIFICATIONS } from '@thv/mcp/methods'
import type { ParsedNotification, ParsedRequest, ParsedResponse } from '@thv/mcp/parse-body'
import type { Rejection } from '@thv/mcp/wire-errors'
import type { Pipeline } from '@thv/middleware/pipeline/pipeline'
import type { MessageContext } from '@thv/middleware/pipeline/request-context'
import type { CallSink, InFlightCall } from '../process/in-flight.ts'
import type { ProcessLink } from '../process/process-connection.ts'
import type { StdioConfig } from '../process/stdio-config.ts'
import { statusOf } from './modern-call.ts'

export interface ListenOptions {
  readonly context: MessageContext
  readonly request: ParsedRequest
  readonly reply: HttpReply
  readonly pipeline: Pipeline
  readonly config: StdioConfig
}

/**
 * One `subscriptions/listen` of a client, with one of its own at the server: the server filters, and the id under which it tags its
 * notifications tells whose they are. Towards the client they carry the client's id, in its JSON type.
 */
export class ListenStream implements CallSink {
  readonly #options: ListenOptions
  readonly #done = Promise.withResolvers<void>()
  readonly #id: RequestId
  #link: ProcessLink | undefined
  #call: InFlightCall | undefined
  #isAcknowledged = false
  #isOver = false

  constructor(options: ListenOptions) {
    this.#options = options
    this.#id = options.request.id
  }

  get done(): Promise<void> {
    return this.#done.promise
  }

  start(link: ProcessLink): void {
    const { request, context, config } = this.#options
    const { signal } = context.exchange
    this.#link = link
    this.#call = link.call({ text: request.text, hasToken: false }, this, { idleMs: config.idleTimeoutMs })
    const onGone = () => this.#leave('the client went away')
    if (signal.aborted) onGone()
    else signal.addEventListener('abort', onGone, { once: true })
  }

  /** The acknowledgement must come first; before it nothing is passed on. False if it was not. */
  onNotification({ method, text }: ParsedNotification): boolean {
    if (this.#isOver) return false
    const isAcknowledgement = method === NOTIFICATIONS.subscriptionsAcknowledged
    if (!this.#isAcknowledged && !isAcknowledgement) return false
    this.#acknowledged()
    const tagged = spliceMember(text, ['params', '_meta', META.subscriptionId], JSON.stringify(this.#id))
    return this.#options.reply.event(tagged, isCoalescible(method) ? { key: method } : {})
  }

  /** The server ends it, or does not serve it at all; then the client learns that nothing will come, and can stay. */
  onResponse(response: ParsedResponse): void {
    const { reply } = this.#options
    const error = isErrorResponse(response.message) ? response.message.error : undefined
    if (error?.code === METHOD_NOT_FOUND && !this.#isAcknowledged) {
      this.#acknowledgeNothing()
      return
    }
    const tag = JSON.stringify(this.#id)
    const text = error === undefined ? spliceMember(response.text, ['result', '_meta', META.subscriptionId], tag) : response.text
    reply.finish(spliceId(text, this.#id), statusOf(response))
    this.#end()
  }

  /** A stream that ends without a result tells the client to listen again. */
  onFailure(rejection: Rejection): void {
    const { reply } = this.#options
    if (this.#isAcknowledged) reply.abandon()
    else reply.reject(rejection, this.#id)
    this.#end()
  }

  mayIdle(): boolean {
    return this.#isAcknowledged
  }

  /** This process is about to stop, or the token of the client ends: a result says that the stream was ended on purpose. */
  drain(): void {
    if (this.#isOver) return
    const result = { resultType: 'complete', _meta: { [META.subscriptionId]: this.#id } }
    if (this.#isAcknowledged) this.#options.reply.finish(serialise(resultResponse(this.#id, result)))
    this.#leave('shutting down')
  }

  #acknowledged(): void {
    if (this.#isAcknowledged) return
    this.#isAcknowledged = true
    const { pipeline, context } = this.#options
    context.endStream = () => {
      this.drain()
      return true
    }
    pipeline.streaming(context)
  }

  #acknowledgeNothing(): void {
    this.#acknowledged()
    const params = { notifications: {}, _meta: { [META.subscriptionId]: this.#id } }
    this.#options.reply.event(serialise({ jsonrpc: '2.0', method: NOTIFICATIONS.subscriptionsAcknowledged, params }))
  }

  #leave(reason: string): void {
    if (this.#isOver) return
    if (this.#link !== undefined && this.#call !== undefined) this.#link.cancel(this.#call, reason)
    this.#options.reply.abandon()
    this.#end()
  }

  #end(): void {
    this.#isOver = true
    this.#done.resolve()
  }
}

/** Two of them that both wait say no more than one. */
function isCoalescible(method: string): boolean {
  return method.endsWith('/list_changed')
}

const METHOD_NOT_FOUND = wireErrors.method_not_found.jsonRpcCode
