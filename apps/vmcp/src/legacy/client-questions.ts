import { mintMark } from '@thv/gateway/sessions/id-prefix'
import type { Clock, Timer } from '@thv/kernel/clock'
import { ThvError } from '@thv/kernel/errors'
import { McpErrorResponse } from '@thv/mcp/client/client-errors'
import { isErrorResponse, isObject, type JsonObject, type RequestId, serialise } from '@thv/mcp/json-rpc'
import { NOTIFICATIONS } from '@thv/mcp/methods'
import type { ParsedResponse } from '@thv/mcp/parse-body'

interface Question {
  readonly resolve: (result: JsonObject) => void
  readonly reject: (error: Error) => void
  readonly timer: Timer
}

/** Sends one message to the client; false if there is no way to it. */
export type SendToClient = (text: string) => boolean

const ASK_TIMEOUT_MS = 600_000
const MAX_QUESTIONS = 64

/** The questions that backends put to one legacy client, each under an id that no other session knows. */
export class ClientQuestions {
  readonly #clock: Clock
  readonly #open = new Map<RequestId, Question>()
  readonly #mark = mintMark()
  #asked = 0

  constructor(clock: Clock) {
    this.#clock = clock
  }

  get size(): number {
    return this.#open.size
  }

  /** Rejects with McpErrorResponse where the client answers with an error, and when there is no way to it or no answer in time. */
  ask(request: { readonly method: string; readonly params: JsonObject }, send: SendToClient, signal: AbortSignal): Promise<JsonObject> {
    if (this.#open.size >= MAX_QUESTIONS) return Promise.reject(refused('too many questions at a time'))
    const id = `${this.#mark}.${++this.#asked}`
    const { method, params } = request
    if (!send(serialise({ jsonrpc: '2.0', id, method, params }))) return Promise.reject(refused('the client has no stream to be asked on'))
    return new Promise((resolve, reject) => {
      const timer = this.#clock.setTimer(ASK_TIMEOUT_MS, () => this.#take(id)?.reject(refused('the client did not answer in time')))
      this.#open.set(id, { resolve, reject, timer })
      signal.addEventListener('abort', () => this.#withdraw(id, send), { once: true })
      if (signal.aborted) this.#withdraw(id, send)
    })
  }

  /** The client's answer. An answer to no question is ignored. */
  answered({ id, message }: ParsedResponse): void {
    const question = id === undefined ? undefined : this.#take(id)
    if (question === undefined) return
    if (isErrorResponse(message)) question.reject(new McpErrorResponse(message.error))
    else question.resolve(isObject(message.result) ? message.result : {})
  }

  end(): void {
    for (const id of [...this.#open.keys()]) this.#take(id)?.reject(refused('the session of the client has ended'))
  }

  /** The backend does not want the answer any more. */
  #withdraw(id: RequestId, send: SendToClient): void {
    const question = this.#take(id)
    if (question === undefined) return
    send(serialise({ jsonrpc: '2.0', method: NOTIFICATIONS.cancelled, params: { requestId: id, reason: 'not needed any more' } }))
    question.reject(new ThvError('aborted', 'the question was withdrawn'))
  }

  #take(id: RequestId): Question | undefined {
    const question = this.#open.get(id)
    this.#open.delete(id)
    question?.timer.cancel()
    return question
  }
}

function refused(message: string): McpErrorResponse {
  return new McpErrorResponse({ code: -32603, message })
}
