import type { CancelListener, Cancellation } from '@thv/http/cancellation'
import { ThvError } from '@thv/kernel/errors'
import type { Placed } from '@thv/kernel/placed-list'
import type { JsonRpcRequest, RequestId } from '../../json-rpc.ts'
import type { ParsedBody } from '../../parse-body.ts'
import { plainResultFor } from '../../plain-result.ts'
import type { SseEvent } from '../../sse-decoder.ts'
import type { ClientContext } from '../client-context.ts'
import { protocolError } from '../client-errors.ts'
import { isAnswerTo, type LinkAnswer, type LinkContext } from '../link.ts'
import { messageIn } from './answer-reader.ts'

/**
 * Waits for the answer to one request on a stream of its own. The caller has it as soon as it is there; the stream may then end by
 * itself, which keeps its connection for the next request, and is cut off if it does not.
 */
export class ResponseWait implements Cancellation, CancelListener, Placed {
  place = -1
  /** The maker of the wait must wait for it: it may reject. */
  readonly answer: Promise<LinkAnswer>
  isAnswered = false
  /** With the request, and a while after its answer. */
  aborted = false
  reason: unknown
  readonly #request: JsonRpcRequest
  readonly #link: LinkContext
  readonly #ended: Cancellation
  readonly #context: ClientContext
  readonly #settle: PromiseWithResolvers<LinkAnswer>
  #listener: CancelListener | undefined
  #controller: AbortController | undefined

  constructor(request: JsonRpcRequest, link: LinkContext, context: ClientContext) {
    this.#request = request
    this.#link = link
    this.#context = context
    this.#settle = Promise.withResolvers()
    this.answer = this.#settle.promise
    this.#ended = link.cancellation ?? link.signal
    if (this.#ended.aborted) this.handleEvent()
    else this.#ended.addEventListener('abort', this, { once: true })
  }

  /**
   * Settles the wait once the HTTP answer has ended, unless the answer came on a stream before. `finish` makes the answer of what was read, and gets the
   * failure where the answer broke off; what it throws is the outcome.
   */
  follow(sending: Promise<void>, finish: (failure?: unknown) => LinkAnswer | Promise<LinkAnswer>): void {
    sending.then(
      () => this.#finish(finish),
      (error: unknown) => this.#finish(finish, error),
    )
  }

  get id(): RequestId {
    return this.#request.id
  }

  /** Only a stream that is resumed needs a real one. */
  get signal(): AbortSignal {
    if (this.#controller === undefined) {
      this.#controller = new AbortController()
      if (this.aborted) this.#controller.abort(this.reason)
    }
    return this.#controller.signal
  }

  addEventListener(_type: 'abort', listener: CancelListener): void {
    this.#listener = listener
  }

  removeEventListener(_type: 'abort', listener: CancelListener): void {
    if (this.#listener === listener) this.#listener = undefined
  }

  /** The signal of the request has aborted. */
  handleEvent(): void {
    this.end(this.#ended.reason)
  }

  /** The caller does not wait any longer. */
  end(reason: unknown): void {
    if (!this.isAnswered) this.#settle.reject(reason)
    this.#cancel(reason)
  }

  /** The caller has the answer, or has left. */
  release(): void {
    this.#ended.removeEventListener('abort', this)
  }

  /** Nothing counts after the answer. */
  take(event: SseEvent): void {
    if (this.isAnswered || this.#isPassed(event)) return
    const body = messageIn(event)
    if (body === undefined) return
    if (body.kind === 'request' || body.kind === 'notification') this.#link.receive(body)
    else if (body.kind === 'response' && isAnswerTo(this.#request, body.message)) this.#answered(body)
    else if (body.kind === 'invalid' && body.id === this.#request.id) this.#refuse(body.detail)
    else this.#context.warn(`${this.#request.method}: ignored ${body.kind === 'invalid' ? body.detail : 'an answer to another id'}`)
  }

  /** The response to a request that was written goes on as text. */
  #isPassed({ event, data }: SseEvent): boolean {
    const { written } = this.#link
    if (written === undefined || (event !== undefined && event !== 'message')) return false
    const text = plainResultFor(written.id, { text: data, from: this.#request.id })
    if (text === undefined) return false
    this.#done()
    this.#settle.resolve({ status: 200, headers: {}, body: undefined, text })
    return true
  }

  #finish(finish: (failure?: unknown) => LinkAnswer | Promise<LinkAnswer>, failure?: unknown): void {
    if (this.isAnswered) return
    try {
      const answer = finish(failure)
      // Not before it is there: a stream that goes on may bring the answer first.
      if (answer instanceof Promise) answer.then(this.#settle.resolve, this.#settle.reject)
      else this.#settle.resolve(answer)
    } catch (error) {
      this.#settle.reject(error)
    }
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
    this.#context.clock.setTimer(LINGER_MS, () => this.#cancel(new ThvError('aborted', 'the answer is there')))
  }

  #cancel(reason: unknown): void {
    if (this.aborted) return
    this.aborted = true
    this.reason = reason
    this.#listener?.handleEvent()
    this.#controller?.abort(reason)
  }
}

const LINGER_MS = 1_000
