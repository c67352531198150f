import { headerText } from '@thv/http/header-map'
import { OutboundError } from '@thv/http/outbound/outbound-error'
import { withTimeLimit } from '@thv/kernel/deadline'
import { errorMessage, ThvError } from '@thv/kernel/errors'
import { PlacedList } from '@thv/kernel/placed-list'
import { HEADERS } from '../../header-names.ts'
import { isErrorResponse, type JsonRpcNotification, type JsonRpcRequest, type JsonRpcResponse, serialise } from '../../json-rpc.ts'
import { METHODS } from '../../methods.ts'
import type { ParsedMessage } from '../../parse-body.ts'
import { plainResultFor } from '../../plain-result.ts'
import { isValidSessionId } from '../../session-id.ts'
import type { SseEvent } from '../../sse-decoder.ts'
import type { LegacyVersion } from '../../versions.ts'
import type { ClientContext } from '../client-context.ts'
import { FootingLost, protocolError, streamBroken } from '../client-errors.ts'
import { httpError } from '../http-failure.ts'
import type { LegacyLink } from '../legacy-engine.ts'
import type { LinkAnswer, LinkContext, Written } from '../link.ts'
import { AnswerReader, messageIn } from './answer-reader.ts'
import { followStream, type StreamEnd } from './follow-stream.ts'
import type { HttpEndpoint } from './http-endpoint.ts'
import { POST_HEADERS } from './modern-http-link.ts'
import { ResponseWait } from './response-wait.ts'

/** Streamable HTTP of the legacy revisions: sessions, streams that can be resumed, and one stream that belongs to no request. */
export class LegacyHttpLink implements LegacyLink {
  readonly transport = 'streamable-http'
  receive: (message: ParsedMessage) => void = () => {}
  onLost: (reason: ThvError) => void = () => {}
  readonly #endpoint: HttpEndpoint
  readonly #context: ClientContext
  readonly #closing = new AbortController()
  #headers: Record<string, string> = {}
  /** The same object for all requests of a session. */
  #postHeaders: Readonly<Record<string, string>> = POST_HEADERS
  #standalone: Promise<boolean> | undefined
  readonly #waits = new PlacedList<ResponseWait>()
  #isLost = false

  constructor(endpoint: HttpEndpoint, context: ClientContext) {
    this.#endpoint = endpoint
    this.#context = context
  }

  get #hasSession(): boolean {
    return HEADERS.sessionId in this.#headers
  }

  /** The version header exists since 2025-06-18. */
  negotiated(version: LegacyVersion): void {
    if (version >= '2025-06-18') this.#setHeader(HEADERS.protocolVersion, version)
  }

  async request(message: JsonRpcRequest, link: LinkContext): Promise<LinkAnswer> {
    const wait = new ResponseWait(message, link, this.#context)
    this.#waits.add(wait)
    try {
      try {
        this.#post(message, link, wait)
      } catch (error) {
        // The answer may have been rejected already: it must be waited for.
        wait.end(error)
      }
      const answer = await wait.answer
      this.#demandSession(answer)
      return answer
    } finally {
      this.#waits.delete(wait)
      wait.release()
    }
  }

  async send(message: JsonRpcNotification | JsonRpcResponse, signal: AbortSignal): Promise<void> {
    const reader = this.#reader(() => {})
    await this.#endpoint.send({ method: 'POST', headers: this.#postHeaders, body: serialise(message), signal }, reader)
    this.#demandSession(reader)
    const failure = httpError(reader)
    if (failure) throw failure
  }

  /** Opens the stream for what belongs to no request, once, and keeps it open. False when the server has none (405). */
  openStandalone(): Promise<boolean> {
    this.#standalone ??= this.#follow()
    return this.#standalone
  }

  abandon(reason: ThvError): void {
    for (const wait of [...this.#waits]) wait.end(reason)
  }

  async close(): Promise<void> {
    this.#closing.abort(new ThvError('aborted', 'the MCP client is closed'))
    if (this.#hasSession && !this.#isLost) await this.#deleteSession()
  }

  #post(message: JsonRpcRequest, link: LinkContext, wait: ResponseWait): void {
    const { written } = link
    const signal = link.cancellation === undefined ? link.signal : undefined
    const isHandshake = message.method === METHODS.initialize
    const reader = this.#reader((event) => wait.take(event), isHandshake ? () => this.#adoptSession(reader) : undefined)
    const headers = isHandshake ? POST_HEADERS : this.#postHeaders
    const body = written?.text ?? serialise(message)
    wait.follow(this.#endpoint.send({ method: 'POST', headers, body, signal, cancellation: wait }, reader), (failure) => {
      if (failure !== undefined && !(reader.isStream && isBrokenOff(reader, failure))) throw failure
      if (!reader.isStream) return answerOf(reader, message, written)
      if (reader.lastEventId === '') throw streamBroken(message.method, failure)
      return this.#resume(message, { wait, from: { lastEventId: reader.lastEventId, retry: reader.retry } })
    })
  }

  /** Comes back for the rest of a stream, until the answer is there or the server has it no more. */
  async #resume(message: JsonRpcRequest, { wait, from }: { wait: ResponseWait; from: Pick<StreamEnd, 'lastEventId' | 'retry'> }) {
    const { clock, limits } = this.#context
    const signal = AbortSignal.any([wait.signal, this.#closing.signal])
    const get = (lastEventId: string) => this.#get({ lastEventId, signal, onEvent: (event) => wait.take(event) })
    const end = await followStream({ get, from, clock, signal, maxFailures: limits.maxResumes, isDone: () => wait.isAnswered })
    if (wait.isAnswered) return await wait.answer
    if (end.status === 404 && this.#hasSession) throw this.#lost({ mayRetry: false })
    throw streamBroken(message.method, httpError({ ...end, body: undefined }))
  }

  #follow(): Promise<boolean> {
    const opened = Promise.withResolvers<boolean>()
    const { clock } = this.#context
    const { signal } = this.#closing
    const onEvent = (event: SseEvent) => this.#unrelated(event)
    const get = (lastEventId: string) => this.#get({ lastEventId, signal, onEvent, onStream: () => opened.resolve(true) })
    followStream({ get, clock, signal, maxFailures: Number.POSITIVE_INFINITY }).then(
      (end) => {
        opened.resolve(false)
        if (end.status === 404 && this.#hasSession) this.onLost(this.#lost({ mayRetry: false }))
        else if (end.status !== 405) this.#context.warn(`the MCP server refuses its standalone stream (HTTP ${end.status})`)
      },
      (error: unknown) => {
        opened.resolve(false)
        if (!signal.aborted) this.#context.warn(`the standalone stream of the MCP server ended: ${errorMessage(error)}`)
      },
    )
    return opened.promise
  }

  /** Answers do not belong here, but some servers send them here all the same. */
  #unrelated(event: SseEvent): void {
    const body = messageIn(event)
    const wait = body?.kind === 'response' && body.id !== undefined ? [...this.#waits].find(({ id }) => id === body.id) : undefined
    if (body?.kind === 'request' || body?.kind === 'notification') this.receive(body)
    else if (wait) wait.take(event)
    else if (body) this.#context.warn('ignored an unexpected message on the standalone stream')
  }

  async #get(options: {
    lastEventId: string
    signal: AbortSignal
    onEvent: (event: SseEvent) => void
    onStream?: () => void
  }): Promise<StreamEnd> {
    const { lastEventId, signal, onEvent, onStream } = options
    const headers: Record<string, string> = { accept: 'text/event-stream', ...this.#headers }
    if (lastEventId !== '') headers[HEADERS.lastEventId] = lastEventId
    const reader = this.#reader(onEvent, () => reader.isStream && onStream?.())
    let broken: { readonly error?: unknown } = {}
    try {
      await this.#endpoint.send({ method: 'GET', headers, purpose: 'stream', signal }, reader)
    } catch (error) {
      if (!isBrokenOff(reader, error)) throw error
      broken = { error }
    }
    const { status, isStream, retry } = reader
    return { status, headers: reader.headers, isStream, lastEventId: reader.lastEventId, retry, ...broken }
  }

  #adoptSession(reader: AnswerReader): void {
    const id = headerText(reader.headers[HEADERS.sessionId])
    if (id === undefined || reader.status >= 300) return
    if (!isValidSessionId(id)) throw protocolError('assigned a session id with characters that are not allowed')
    this.#setHeader(HEADERS.sessionId, id)
  }

  #setHeader(name: string, value: string): void {
    this.#headers[name] = value
    this.#postHeaders = { ...POST_HEADERS, ...this.#headers }
  }

  /** 404, and what some published servers say instead, for a session they do not know. Nothing was carried out then. */
  #demandSession({ status, body, headers }: LinkAnswer): void {
    if (!this.#hasSession || (status !== 404 && status !== 400)) return
    const code = body?.kind === 'response' && isErrorResponse(body.message) ? body.message.error.code : undefined
    if (status === 404 || code === undefined || LOST_CODES.has(code))
      throw this.#lost({ mayRetry: true, cause: httpError({ status, headers, body: undefined }) })
  }

  /** Calls that wait on an old stream of the session wait in vain; they may have been carried out. */
  #lost({ mayRetry, cause }: { mayRetry: boolean; cause?: unknown }): FootingLost {
    this.#isLost = true
    const lost = (may: boolean) => new FootingLost('the MCP server does not know its session any more', { mayRetry: may, cause })
    if (!this.#closing.signal.aborted) this.#closing.abort(lost(false))
    return lost(mayRetry)
  }

  async #deleteSession(): Promise<void> {
    const { clock, limits, warn } = this.#context
    const limit = { clock, timeoutMs: limits.farewellMs, what: 'the end of the session', signals: [] }
    try {
      const reader = this.#reader(() => {})
      await withTimeLimit(limit, (signal) => this.#endpoint.send({ method: 'DELETE', headers: { ...this.#headers }, signal }, reader))
    } catch (error) {
      warn(`the session could not be ended: ${errorMessage(error)}`)
    }
  }

  #reader(onEvent: (event: SseEvent) => void, onStart?: () => unknown): AnswerReader {
    return new AnswerReader({ maxBytes: this.#context.limits.maxMessageBytes, onEvent, ...(onStart && { onStart: () => void onStart() }) })
  }
}

/** Only a broken connection may be mended by another one; everything else goes to the caller. */
function isBrokenOff(reader: AnswerReader, error: unknown): boolean {
  return error instanceof OutboundError && (reader.isStream || !error.answered)
}

function answerOf(reader: AnswerReader, { id: from }: JsonRpcRequest, written: Written | undefined): LinkAnswer {
  const { status, headers } = reader
  const text = written === undefined || status !== 200 ? undefined : plainResultFor(written.id, { text: reader.text, from })
  return text === undefined ? { status, headers, body: reader.body } : { status, headers, body: undefined, text }
}

/** With HTTP 400: two that published servers use for an unknown session, and two of a modern server that stands where a legacy one was. */
const LOST_CODES: ReadonlySet<number> = new Set([-32000, -32001, -32602, -32022])
