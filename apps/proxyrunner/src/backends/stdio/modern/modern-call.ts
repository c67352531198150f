import { answerText } from '@thv/gateway/response/client-response'
import { noteFailure } from '@thv/gateway/response/outcome'
import type { HttpReply } from '@thv/gateway/response/reply'
import { partyOf } from '@thv/gateway/sessions/party'
import { wireErrors } from '@thv/kernel/error-registry'
import { isLogLevel, LOG_LEVELS, type LogLevel, META, metaOf, progressTokenOf } from '@thv/mcp/envelope'
import { isErrorResponse } from '@thv/mcp/json-rpc'
import { spliceMember } from '@thv/mcp/json-splice'
import type { ParsedNotification, ParsedRequest, ParsedResponse } from '@thv/mcp/parse-body'
import type { Rejection } from '@thv/mcp/wire-errors'
import type { Pipeline } from '@thv/middleware/pipeline/pipeline'
import type { MessageContext } from '@thv/middleware/pipeline/request-context'
import type { CallSink } from '../process/in-flight.ts'
import type { ProcessLink } from '../process/process-connection.ts'
import type { StdioConfig } from '../process/stdio-config.ts'

export interface ModernCallOptions {
  readonly context: MessageContext
  /** The message for the server. */
  readonly request: ParsedRequest
  readonly reply: HttpReply
  readonly pipeline: Pipeline
  readonly config: StdioConfig
  /** A last change to the answer in its text form. */
  edit?(text: string): string
}

/** One modern request on its way. It needs nothing but itself; that the client hangs up cancels it. */
export class ModernCall implements CallSink {
  readonly #options: ModernCallOptions
  readonly party: string
  readonly #token: string | number | undefined
  readonly #done = Promise.withResolvers<void>()
  #link: ProcessLink | undefined

  constructor(options: ModernCallOptions) {
    this.#options = options
    this.party = partyOf(options.context.caller.principal, options.context.exchange)
    this.#token = progressTokenOf(metaOf(options.request.message))
  }

  /** Resolves when it is answered or cancelled. */
  run(link: ProcessLink): Promise<void> {
    const { request, config, context } = this.#options
    const { signal } = context.exchange
    this.#link = link
    const call = link.call({ text: request.text, hasToken: this.#token !== undefined }, this, {
      owner: this,
      // Without a level there is nothing that the server could still say on its behalf.
      party: this.#logLevel === undefined ? undefined : this.party,
      idleMs: config.idleTimeoutMs,
      hardMs: config.hardTimeoutMs,
      slowMs: config.streamAfterMs,
    })
    const onGone = () => {
      link.cancel(call, 'the client went away', this.#logLevel === undefined ? 0 : config.ghostMs)
      this.#options.reply.abandon()
      this.#done.resolve()
    }
    if (signal.aborted) onGone()
    else signal.addEventListener('abort', onGone, { once: true })
    return this.#done.promise
  }

  onResponse(response: ParsedResponse): void {
    const { context, pipeline, reply, edit } = this.#options
    const text = answerText(response, context, pipeline)
    if (typeof text === 'string') reply.finish(edit === undefined ? text : edit(text), statusOf(response))
    else reply.reject(text, this.#options.request.id)
    this.#done.resolve()
  }

  onFailure(rejection: Rejection): void {
    noteFailure(this.#options.context, rejection)
    this.#options.reply.reject(rejection, this.#options.request.id)
    this.#done.resolve()
  }

  onProgress(notification: ParsedNotification): void {
    const text = spliceMember(notification.text, ['params', 'progressToken'], JSON.stringify(this.#token))
    this.#options.reply.event(text, { kind: 'progress' })
    this.#hold()
  }

  /** A log message that can only be of this call. Without a level the client wants none (M: `logLevel`); false then. */
  log(notification: ParsedNotification): boolean {
    const wanted = this.#logLevel
    const level = notification.message.params?.['level']
    if (wanted === undefined) return false
    if (isLogLevel(level) && LOG_LEVELS.indexOf(level) < LOG_LEVELS.indexOf(wanted)) return false
    const isSent = this.#options.reply.event(notification.text, { kind: 'log' })
    this.#hold()
    return isSent
  }

  onSlow(): void {
    this.#options.reply.openStream()
  }

  get #logLevel(): LogLevel | undefined {
    const level = metaOf(this.#options.request.message)?.[META.logLevel]
    return isLogLevel(level) ? level : undefined
  }

  #hold(): void {
    const { stream } = this.#options.reply
    if (stream !== undefined) this.#link?.holdFor(stream, this.#options.config.sharedHoldMs)
  }
}

/** Errors that the standard gives an HTTP status of its own, where it is still free to choose. All others are answers: 200. */
export function statusOf({ message }: ParsedResponse): number {
  if (!isErrorResponse(message)) return 200
  const { code } = message.error
  if (code === METHOD_NOT_FOUND) return 404
  return code === HEADER_MISMATCH || code === MISSING_CAPABILITY || code === UNSUPPORTED_VERSION ? 400 : 200
}

const METHOD_NOT_FOUND = wireErrors.method_not_found.jsonRpcCode
const HEADER_MISMATCH = wireErrors.header_mismatch.jsonRpcCode
const MISSING_CAPABILITY = wireErrors.missing_client_capability.jsonRpcCode
const UNSUPPORTED_VERSION = wireErrors.unsupported_protocol_version.jsonRpcCode
