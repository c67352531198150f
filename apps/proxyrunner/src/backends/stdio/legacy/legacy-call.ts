import { answerText } from '@thv/gateway/response/client-response'
import { noteFailure } from '@thv/gateway/response/outcome'
import type { Reply } from '@thv/gateway/response/reply'
import { metaOf, progressTokenOf } from '@thv/mcp/envelope'
import { spliceMember } from '@thv/mcp/json-splice'
import type { ParsedNotification, ParsedRequest, ParsedResponse } from '@thv/mcp/parse-body'
import type { Rejection } from '@thv/mcp/wire-errors'
import type { Pipeline } from '@thv/middleware/pipeline/pipeline'
import type { MessageContext } from '@thv/middleware/pipeline/request-context'
import type { CallSink, InFlightCall } from '../process/in-flight.ts'
import type { ProcessLink } from '../process/process-connection.ts'
import type { StdioConfig } from '../process/stdio-config.ts'
import type { LegacySession } from './legacy-session.ts'

export interface LegacyCallOptions {
  readonly context: MessageContext
  /** The message for the server. */
  readonly request: ParsedRequest
  readonly session: LegacySession
  readonly reply: Reply
  readonly pipeline: Pipeline
  readonly config: StdioConfig
  /** However it ended. */
  onDone(): void
}

/** A call of a legacy session on its way. That the client hangs up does not end it; what comes then can be fetched again. */
export class LegacyCall implements CallSink {
  readonly #options: LegacyCallOptions
  readonly #token: string | number | undefined
  #link: ProcessLink | undefined
  #call: InFlightCall | undefined
  #isOver = false

  constructor(options: LegacyCallOptions) {
    this.#options = options
    this.#token = progressTokenOf(metaOf(options.request.message))
  }

  get reply(): Reply {
    return this.#options.reply
  }

  start(link: ProcessLink): void {
    const { request, session, config } = this.#options
    session.calls.set(request.id, this)
    this.#link = link
    const call = link.call({ text: request.text, hasToken: this.#token !== undefined }, this, {
      owner: session,
      party: session.party,
      idleMs: config.idleTimeoutMs,
      hardMs: config.hardTimeoutMs,
      slowMs: config.streamAfterMs,
    })
    this.#call = call
  }

  onResponse(response: ParsedResponse): void {
    const { context, pipeline, reply, session } = this.#options
    if (!this.#end()) return
    session.process?.noteElicitations(session, response)
    const text = answerText(response, context, pipeline)
    if (typeof text === 'string') reply.finish(text)
    else reply.reject(text, this.#options.request.id)
  }

  onFailure(rejection: Rejection): void {
    if (!this.#end()) return
    noteFailure(this.#options.context, rejection)
    this.#options.reply.reject(rejection, this.#options.request.id)
  }

  /** Only a client that gave a token gets here, and gets its own back. */
  onProgress(notification: ParsedNotification): void {
    const text = spliceMember(notification.text, ['params', 'progressToken'], JSON.stringify(this.#token))
    this.#options.reply.event(text, { kind: 'progress' })
    this.#hold()
  }

  onSlow(): void {
    this.#options.reply.openStream()
  }

  /** A person takes as long as it takes: the question has a limit of its own. */
  mayIdle(): boolean {
    return this.#options.session.questions.size > 0
  }

  /** The client has cancelled it, or its session is over. The server is notified; no client gets an answer. */
  abandon(reason: string): void {
    if (!this.#end()) return
    if (this.#link !== undefined && this.#call !== undefined) this.#link.cancel(this.#call, reason)
    this.#options.reply.abandon()
  }

  #end(): boolean {
    if (this.#isOver) return false
    this.#isOver = true
    const { session, request } = this.#options
    if (session.calls.get(request.id) === this) session.calls.delete(request.id)
    this.#options.onDone()
    return true
  }

  #hold(): void {
    const { session, reply, config } = this.#options
    if (reply.stream !== undefined) this.#link?.holdFor(reply.stream, session.process?.slot.isOwn ? config.ownHoldMs : config.sharedHoldMs)
  }
}
