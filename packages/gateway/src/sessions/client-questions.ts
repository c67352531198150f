import type { Clock } from '@thv/kernel/clock'
import { metaOf, progressTokenOf } from '@thv/mcp/envelope'
import { errorResponse, type RequestId, serialise, spliceId } from '@thv/mcp/json-rpc'
import { spliceMember } from '@thv/mcp/json-splice'
import { NOTIFICATIONS } from '@thv/mcp/methods'
import type { ParsedNotification, ParsedRequest, ParsedResponse } from '@thv/mcp/parse-body'
import { errorObjectOf, reject } from '@thv/mcp/wire-errors'
import type { Outlet } from '../streams/session-streams.ts'
import { OpenQuestions } from './open-questions.ts'

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
  /** The server's own. The client gets the id of the question instead: tokens of several servers may be equal. */
  readonly token: string | number | undefined
  /** As the client gets it. */
  readonly text: string
}

/** A client opens its stream right after the handshake, if it opens one at all. */
const NO_STREAM_MS = 10_000

/** Requests of servers to the client of one session (sampling, elicitation, roots), from the question to its answer or its end. */
export class ClientQuestions {
  readonly #options: ClientQuestionsOptions
  readonly #questions: OpenQuestions<Question>

  constructor(options: ClientQuestionsOptions) {
    this.#options = options
    this.#questions = new OpenQuestions(options.clock)
  }

  get size(): number {
    return this.#questions.size
  }

  /**
   * Puts a question of the server to the client, under an id of its own, on the stream that the client opened last. Without any stream it
   * waits for one if `mayWait` says so. False if it cannot be put, or too many are open: then the caller refuses it.
   */
  ask(asker: Asker, request: ParsedRequest, mayWait: boolean): boolean {
    if (this.#questions.isFull) return false
    const stream = this.#options.outlet.newest()
    if (stream === undefined && !mayWait) return false
    const id = this.#questions.mintId()
    const token = progressTokenOf(metaOf(request.message))
    const named = spliceId(request.text, id)
    const text = token === undefined ? named : spliceMember(named, ['params', '_meta', 'progressToken'], JSON.stringify(id))
    const isOnTheWay = stream === undefined ? this.#options.outlet.deliver(text) : stream.send(text) !== 'lost'
    if (!isOnTheWay) return false
    const { askTimeoutMs } = this.#options
    const ms = stream === undefined ? Math.min(NO_STREAM_MS, askTimeoutMs) : askTimeoutMs
    const onOver = () => this.#giveUp(id, 'the client did not answer in time')
    this.#questions.add(id, { asker, id: request.id, token, text }, { ms, onOver })
    return true
  }

  /** The client's answer goes to the server that asked. False if none did: the answer is ignored. */
  answered(response: ParsedResponse): boolean {
    const question = response.id === undefined ? undefined : this.#questions.take(response.id)
    if (question === undefined) return false
    question.asker.respond(response.text, question.id)
    return true
  }

  /** Progress that a client reports on what it was asked; a token that was not given to it goes nowhere. */
  progressed(notification: ParsedNotification): boolean {
    const id = notification.message.params?.['progressToken']
    const question = typeof id === 'string' ? this.#questions.get(id) : undefined
    if (question?.token === undefined) return false
    question.asker.send(spliceMember(notification.text, ['params', 'progressToken'], JSON.stringify(question.token)))
    return true
  }

  /** The server does not want the answer any more. */
  withdrawn(asker: Asker, serverId: RequestId, notification: ParsedNotification): boolean {
    const found = this.#questions.find((question) => question.asker === asker && question.id === serverId)
    if (found === undefined) return false
    const [id, { text }] = found
    this.#questions.take(id)
    this.#options.outlet.withdraw(text)
    this.#options.outlet.newest()?.send(spliceMember(notification.text, ['params', 'requestId'], JSON.stringify(id)))
    return true
  }

  /** The server is gone, and its questions with it. */
  askerDown(asker: Asker): void {
    const isOfIts = (question: Question) => question.asker === asker
    for (let found = this.#questions.find(isOfIts); found !== undefined; found = this.#questions.find(isOfIts)) {
      const [id, { text }] = found
      this.#questions.take(id)
      this.#options.outlet.withdraw(text)
      const params = { requestId: id, reason: 'the server has ended' }
      this.#options.outlet.newest()?.send(serialise({ jsonrpc: '2.0', method: NOTIFICATIONS.cancelled, params }))
    }
  }

  /** Whatever is open is given up on both sides. */
  end(): void {
    for (const id of this.#questions.ids()) this.#giveUp(id, 'the session of the client has ended')
  }

  #giveUp(id: RequestId, detail: string): void {
    const question = this.#questions.take(id)
    if (question === undefined) return
    this.#options.outlet.withdraw(question.text)
    question.asker.send(serialise(errorResponse(question.id, errorObjectOf(reject('internal_error', { detail })))))
  }
}
