import type { JsonRpcRequest } from '../../json-rpc.ts'
import type { ParsedBody } from '../../parse-body.ts'
import type { SseEvent } from '../../sse-decoder.ts'
import type { ClientContext } from '../client-context.ts'
import { protocolError } from '../client-errors.ts'
import { isAnswerTo, type LinkAnswer, type LinkContext } from '../link.ts'
import { messageIn } from './answer-reader.ts'

/**
 * Waits for the answer to one request on a stream of its own. The caller has it as soon as it is there; the stream may then end by
 * itself, which keeps its connection for the next request, and is cut off if it does not.
 */
export class ResponseWait {
  readonly answer: Promise<LinkAnswer>
  /** Aborts with the request, and a while after its answer. */
  readonly signal: AbortSignal
  isAnswered = false
  readonly #request: JsonRpcRequest
  readonly #link: LinkContext
  readonly #context: ClientContext
  readonly #linger = new AbortController()
  readonly #settle: PromiseWithResolvers<LinkAnswer>

  constructor(request: JsonRpcRequest, link: LinkContext, context: ClientContext) {
    this.#request = request
    this.#link = link
    this.#context = context
    this.#settle = Promise.withResolvers()
    this.answer = this.#settle.promise
    this.answer.catch(() => {}) // a race may have been won by another failure
    this.signal = AbortSignal.any([link.signal, this.#linger.signal])
  }

  /** Nothing counts after the answer. */
  take(event: SseEvent): void {
    const body = this.isAnswered ? undefined : messageIn(event)
    if (body === undefined) return
    if (body.kind === 'request' || body.kind === 'notification') this.#link.receive(body)
    else if (body.kind === 'response' && isAnswerTo(this.#request, body.message)) this.#answered(body)
    else if (body.kind === 'invalid' && body.id === this.#request.id) this.#refuse(body.detail)
    else this.#context.warn(`${this.#request.method}: ignored ${body.kind === 'invalid' ? body.detail : 'an answer to another id'}`)
  }

  #answered(body: ParsedBody): void {
    this.#done()
    this.#settle.resolve({ status: 200, headers: {}, body })
  }

  #refuse(detail: string): void {
    this.#done()
    this.#settle.reject(protocolError(`sent an answer that is no message: ${detail}`))
  }

  #done(): void {
    this.isAnswered = true
    this.#context.clock.setTimer(LINGER_MS, () => this.#linger.abort())
  }
}

const LINGER_MS = 1_000
