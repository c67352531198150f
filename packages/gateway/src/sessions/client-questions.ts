import type { Clock, Timer } from '@thv/kernel/clock'
import { metaOf, progressTokenOf } from '@thv/mcp/envelope'
import { errorResponse, type RequestId, serialise, spliceId } from '@thv/mcp/json-rpc'
import { spliceMember } from '@thv/mcp/json-splice'
import { NOTIFICATIONS } from '@thv/mcp/methods'
import type { ParsedNotification, ParsedRequest, ParsedResponse } from '@thv/mcp/parse-body'
import { errorObjectOf, reject } from '@thv/mcp/wire-errors'
import type { Outlet } from '../streams/session-streams.ts'
import { mintMark } from './id-prefix.ts'

/** The server that asks: a process, or whatever else gets the client's answers. */
export interface Asker {
  /** A response of the client, under the id that the server knows. */
  respond(text: string, id: RequestId): unknown
  /** Any other message. */
  send(text: string): unknown
}

export interface ClientQuestionsOptions {
  readonly outlet: Outlet
  readonly clock: Clock
  readonly askTimeoutMs: number
}

/** A question that the client has not answered yet. */
interface Question {
  readonly asker: Asker
  /** The id that the server knows it by. */
  readonly id: RequestId
  readonly token: string | number | undefined
  /** As the client gets it. */
  readonly text: string
  readonly timer: Timer
}

/** A client opens its stream right after the handshake, if it opens one at all. */
const NO_STREAM_MS = 10_000
/** A person does not answer more at once. Each is kept until it is answered or given up. */
const MAX_QUESTIONS = 256

/** Requests of servers to the client of one session (sampling, elicitation, roots), from the question to its answer or its end. */
export class ClientQuestions {
  readonly #options: ClientQuestionsOptions
  readonly #questions = new Map<RequestId, Question>()
  readonly #mark = mintMark()
  #asked = 0

  constructor(options: ClientQuestionsOptions) {
    this.#options = options
  }

  get size(): number {
    return this.#questions.size
  }

  /**
   * Puts a question of the server to the client, under an id of its own, on the stream that the client opened last. Without any stream it
   * waits for one if `mayWait` says so. False if it cannot be put, or too many are open: then the caller refuses it.
   */
  ask(asker: Asker, request: ParsedRequest, mayWait: boolean): boolean {
    if (this.#questions.size >= MAX_QUESTIONS) return false
    const stream = this.#options.outlet.newest()
    if (stream === undefined && !mayWait) return false
    const id = `${this.#mark}.${++this.#asked}`
    const text = spliceId(request.text, id)
    const isOnTheWay = stream === undefined ? this.#options.outlet.deliver(text) : stream.send(text) !== 'lost'
    if (!isOnTheWay) return false
    const { clock, askTimeoutMs } = this.#options
    const limitMs = stream === undefined ? Math.min(NO_STREAM_MS, askTimeoutMs) : askTimeoutMs
    const token = progressTokenOf(metaOf(request.message))
    const timer = clock.setTimer(limitMs, () => this.#giveUp(id, 'the client did not answer in time'))
    this.#questions.set(id, { asker, id: request.id, token, text, timer })
    return true
  }

  /** The client's answer goes to the server that asked. False if none did: the answer is ignored. */
  answered(response: ParsedResponse): boolean {
    const question = response.id === undefined ? undefined : this.#take(response.id)
    if (question === undefined) return false
    question.asker.respond(response.text, question.id)
    return true
  }

  /** Progress that a client reports on what it was asked; a token that was not given to it goes nowhere. */
  progressed(notification: ParsedNotification): boolean {
    const token = notification.message.params?.['progressToken']
    for (const question of this.#questions.values()) {
      if (question.token === undefined || question.token !== token) continue
      question.asker.send(notification.text)
      return true
    }
    return false
  }

  /** The server does not want the answer any more. */
  withdrawn(asker: Asker, serverId: RequestId, notification: ParsedNotification): boolean {
    for (const [id, question] of this.#questions) {
      if (question.asker !== asker || question.id !== serverId) continue
      this.#take(id)
      this.#options.outlet.withdraw(question.text)
      this.#options.outlet.newest()?.send(spliceMember(notification.text, ['params', 'requestId'], JSON.stringify(id)))
      return true
    }
    return false
  }

  /** The server is gone, and its questions with it. */
  askerDown(asker: Asker): void {
    for (const [id, question] of this.#questions) {
      if (question.asker !== asker) continue
      this.#take(id)
      this.#options.outlet.withdraw(question.text)
      const params = { requestId: id, reason: 'the server has ended' }
      this.#options.outlet.newest()?.send(serialise({ jsonrpc: '2.0', method: NOTIFICATIONS.cancelled, params }))
    }
  }

  /** Whatever is open is given up on both sides. */
  end(): void {
    for (const id of [...this.#questions.keys()]) this.#giveUp(id, 'the session of the client has ended')
  }

  #giveUp(id: RequestId, detail: string): void {
    const question = this.#take(id)
    if (question === undefined) return
    this.#options.outlet.withdraw(question.text)
    question.asker.send(serialise(errorResponse(question.id, errorObjectOf(reject('internal_error', { detail })))))
  }

  #take(id: RequestId): Question | undefined {
    const question = this.#questions.get(id)
    this.#questions.delete(id)
    question?.timer.cancel()
    return question
  }
}
