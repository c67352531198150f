import { OpenQuestions } from '@thv/gateway/sessions/open-questions'
import type { Clock } from '@thv/kernel/clock'
import { ThvError } from '@thv/kernel/errors'
import { isErrorResponse, isObject, type JsonObject, type RequestId, serialise } from '@thv/mcp/json-rpc'
import { NOTIFICATIONS } from '@thv/mcp/methods'
import type { ParsedResponse } from '@thv/mcp/parse-body'
import { ClientRefused } from '../route/client-refused.ts'

interface Question {
  readonly resolve: (result: JsonObject) => void
  readonly reject: (error: Error) => void
  /** Stops watching for the end of the call that it belongs to. */
  readonly release: () => void
}

/** Sends one message to the client; false if there is no way to it. */
export type SendToClient = (text: string) => boolean

const ASK_TIMEOUT_MS = 600_000

/** The questions that backends put to one legacy client, each under an id that no other session knows. */
export class ClientQuestions {
  readonly #open: OpenQuestions<Question>

  constructor(clock: Clock) {
    this.#open = new OpenQuestions(clock)
  }

  get size(): number {
    return this.#open.size
  }

  /** Rejects with ClientRefused where the client answers with an error, and when there is no way to it or no answer in time. */
  ask(request: { readonly method: string; readonly params: JsonObject }, send: SendToClient, signal: AbortSignal): Promise<JsonObject> {
    if (this.#open.isFull) return Promise.reject(refused('too many questions at a time'))
    const id = this.#open.mintId()
    const { method, params } = request
    if (!send(serialise({ jsonrpc: '2.0', id, method, params }))) return Promise.reject(refused('the client has no stream to be asked on'))
    return new Promise((resolve, reject) => {
      const onAbort = () => this.#withdraw(id, send)
      const release = () => signal.removeEventListener('abort', onAbort)
      const onOver = () => this.#take(id)?.reject(refused('the client did not answer in time'))
      this.#open.add(id, { resolve, reject, release }, { ms: ASK_TIMEOUT_MS, onOver })
      signal.addEventListener('abort', onAbort, { once: true })
      if (signal.aborted) this.#withdraw(id, send)
    })
  }

  /** The client's answer. An answer to no question is ignored. */
  answered({ id, message }: ParsedResponse): void {
    const question = id === undefined ? undefined : this.#take(id)
    if (question === undefined) return
    if (isErrorResponse(message)) question.reject(new ClientRefused(message.error))
    else question.resolve(isObject(message.result) ? message.result : {})
  }

  end(): void {
    for (const id of this.#open.ids()) this.#take(id)?.reject(refused('the session of the client has ended'))
  }

  /** The backend does not want the answer any more. */
  #withdraw(id: RequestId, send: SendToClient): void {
    const question = this.#take(id)
    if (question === undefined) return
    send(serialise({ jsonrpc: '2.0', method: NOTIFICATIONS.cancelled, params: { requestId: id, reason: 'not needed any more' } }))
    question.reject(new ThvError('aborted', 'the question was withdrawn'))
  }

  #take(id: RequestId): Question | undefined {
    const question = this.#open.take(id)
    question?.release()
    return question
  }
}

function refused(message: string): ClientRefused {
  return new ClientRefused({ code: -32603, message })
}
