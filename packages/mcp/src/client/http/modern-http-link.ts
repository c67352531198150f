import { OutboundError } from '@thv/http/outbound/outbound-error'
import type { ThvError } from '@thv/kernel/errors'
import { PlacedList } from '@thv/kernel/placed-list'
import { META, metaOf } from '../../envelope.ts'
import { HEADERS } from '../../header-names.ts'
import { type JsonRpcNotification, type JsonRpcRequest, type JsonRpcResponse, serialise } from '../../json-rpc.ts'
import { NAME_SOURCES } from '../../methods.ts'
import { expectedHeaders, nameOf } from '../../modern-headers.ts'
import { MODERN_VERSION } from '../../versions.ts'
import type { ClientContext } from '../client-context.ts'
import { streamBroken } from '../client-errors.ts'
import { httpError } from '../http-failure.ts'
import { type Link, type LinkAnswer, type LinkContext, NO_HEADERS } from '../link.ts'
import { AnswerReader } from './answer-reader.ts'
import type { Headers, HttpEndpoint } from './http-endpoint.ts'
import { NamedHeaders } from './named-headers.ts'
import { ResponseWait } from './response-wait.ts'

export const POST_HEADERS = { 'content-type': 'application/json', accept: 'application/json, text/event-stream' } as const

const NAMED_HEADERS = new NamedHeaders({ ...POST_HEADERS, [HEADERS.protocolVersion]: MODERN_VERSION })

/** Streamable HTTP of 2026-07-28: one POST, one answer. Leaving before the answer cancels; a stream that broke off is lost. */
export class ModernHttpLink implements Link {
  readonly transport = 'streamable-http'
  readonly #endpoint: HttpEndpoint
  readonly #context: ClientContext
  readonly #waits = new PlacedList<ResponseWait>()

  constructor(endpoint: HttpEndpoint, context: ClientContext) {
    this.#endpoint = endpoint
    this.#context = context
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
      return await wait.answer
    } finally {
      this.#waits.delete(wait)
      wait.release()
    }
  }

  abandon(reason: ThvError): void {
    for (const wait of [...this.#waits]) wait.end(reason)
  }

  async send(message: JsonRpcNotification | JsonRpcResponse, signal: AbortSignal): Promise<void> {
    if (!('method' in message)) throw new RangeError('a modern client sends no responses')
    const headers = { ...POST_HEADERS, [HEADERS.protocolVersion]: MODERN_VERSION, [HEADERS.method]: message.method }
    const reader = new AnswerReader({ maxBytes: this.#context.limits.maxMessageBytes, onEvent: () => {} })
    await this.#endpoint.send({ method: 'POST', headers, body: serialise(message), signal }, reader)
    const failure = httpError(reader)
    if (failure) throw failure
  }

  async close(): Promise<void> {}

  #post(message: JsonRpcRequest, link: LinkContext, wait: ResponseWait): void {
    const headers = headersOf(message, link)
    const reader = new AnswerReader({ maxBytes: this.#context.limits.maxMessageBytes, onEvent: (event) => wait.take(event) })
    const { purpose } = link
    const signal = link.cancellation === undefined ? link.signal : undefined
    const body = serialise(message)
    wait.follow(this.#endpoint.send({ method: 'POST', headers, body, purpose, signal, cancellation: wait }, reader), (failure) => {
      if (failure !== undefined && !(failure instanceof OutboundError && reader.isStream)) throw failure
      if (!reader.isStream) return { status: reader.status, headers: reader.headers, body: reader.body }
      throw streamBroken(message.method, failure)
    })
  }
}

function headersOf(message: JsonRpcRequest, { headers }: LinkContext): Headers {
  const isPlain = headers === NO_HEADERS && NAME_SOURCES.has(message.method) && metaOf(message)?.[META.protocolVersion] === MODERN_VERSION
  return isPlain ? NAMED_HEADERS.of(message.method, nameOf(message)) : { ...POST_HEADERS, ...headers, ...expectedHeaders(message) }
}
