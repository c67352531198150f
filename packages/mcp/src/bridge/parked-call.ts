import type { Clock, Timer } from '@thv/kernel/clock'
import { abortable } from '@thv/kernel/deadline'
import { ThvError } from '@thv/kernel/errors'
import type { McpClient, RequestOptions } from '../client/mcp-client.ts'
import { isObject, type JsonObject } from '../json-rpc.ts'
import { METHODS } from '../methods.ts'

/** Puts a question of the backend to the client of a call. */
export type Ask = (request: { readonly method: string; readonly params: JsonObject }, signal: AbortSignal) => Promise<JsonObject>

/** A round of a call: its end, or questions that the client has to answer first. */
export type Round = { readonly result: JsonObject } | { readonly inputRequests: JsonObject }

interface Waiting {
  readonly request: JsonObject
  resolve(answer: JsonObject): void
  reject(error: Error): void
}

export interface ParkedCallOptions {
  readonly id: string
  readonly principal: string
  readonly party: string
  /** Of the method and of what it is called with: a retry must be the same call. */
  readonly digest: string
  readonly clock: Clock
  /** The backend has answered, or the call was given up. */
  onOver(isClean: boolean): void
  /** The client is not expected back any more. */
  onEnd(): void
}

/** Several questions at once come to the client in one round. */
const GATHER_MS = 50
/** How long a call waits for the client to come back. */
export const PARKED_MS = 300_000

/** A call to a legacy backend that stays open while a modern client is asked, over as many requests of the client as that takes. */
export class ParkedCall {
  readonly id: string
  readonly principal: string
  readonly party: string
  readonly digest: string
  readonly #options: ParkedCallOptions
  readonly #abort = new AbortController()
  readonly #questions = new Map<string, Waiting>()
  #listener: RequestOptions | undefined
  #outcome: Promise<JsonObject> | undefined
  #asked = Promise.withResolvers<void>()
  #gather: Timer | undefined
  #expiry: Timer | undefined
  #count = 0
  #round = 0
  #isOver = false
  /** The client has been asked and is expected back. */
  #isParked = false

  constructor(options: ParkedCallOptions) {
    this.id = options.id
    this.principal = options.principal
    this.party = options.party
    this.digest = options.digest
    this.#options = options
  }

  /** Of the state that leads back here; every other one is out of date. */
  get round(): number {
    return this.#round
  }

  /** A question waits for the client, or the client is expected back. */
  get isAsking(): boolean {
    return this.#isParked || this.#questions.size > 0
  }

  readonly ask: Ask = ({ method, params }, signal) => {
    const key = `${KINDS[method] ?? 'question'}-${++this.#count}`
    const { promise, resolve, reject } = Promise.withResolvers<JsonObject>()
    this.#questions.set(key, { request: { method, params }, resolve, reject })
    this.#gather ??= this.#options.clock.setTimer(GATHER_MS, () => {
      this.#gather = undefined
      this.#asked.resolve()
    })
    return abortable(promise, AbortSignal.any([signal, this.#abort.signal])).finally(() => this.#questions.delete(key))
  }

  start(client: McpClient, method: string, params: JsonObject, wantsProgress: boolean): void {
    const options: RequestOptions = {
      signal: this.#abort.signal,
      onNotification: (notification) => this.#listener?.onNotification?.(notification),
      ...(wantsProgress && { onProgress: (progress: JsonObject) => this.#listener?.onProgress?.(progress) }),
    }
    this.#outcome = client.request(method, params, options)
    this.#outcome.then(
      () => this.#over(true),
      () => this.#over(!this.#abort.signal.aborted),
    )
  }

  /** Answers of the client. Those to no question are ignored; questions without an answer are put again. */
  answer(responses: unknown): void {
    if (!isObject(responses)) return
    for (const [key, waiting] of this.#questions) {
      const response = Object.hasOwn(responses, key) ? responses[key] : undefined
      if (!isObject(response)) continue
      this.#questions.delete(key)
      waiting.resolve(response)
    }
  }

  /** Waits for the next round. A client that leaves meanwhile gives the call up. */
  async next(options: RequestOptions): Promise<Round> {
    const { signal = new AbortController().signal } = options
    this.#round++
    this.#isParked = false
    this.#expiry?.cancel()
    this.#listener = options
    const onAbort = () => this.end('the client gave the call up')
    signal.addEventListener('abort', onAbort, { once: true })
    try {
      // A question may have been withdrawn before it is put.
      while (this.#questions.size === 0 && !this.#isOver) {
        await abortable(Promise.race([this.#outcome, this.#asked.promise]), signal)
        this.#asked = Promise.withResolvers<void>()
      }
      if (this.#questions.size === 0) return { result: await abortable(this.#outcome ?? Promise.resolve({}), signal) }
      this.#isParked = true
      this.#expiry = this.#options.clock.setTimer(PARKED_MS, () => this.end('the client did not come back'))
      return { inputRequests: Object.fromEntries([...this.#questions].map(([key, { request }]) => [key, request])) }
    } finally {
      signal.removeEventListener('abort', onAbort)
      this.#listener = undefined
      this.#gather?.cancel()
      this.#gather = undefined
      this.#asked = Promise.withResolvers<void>()
      if (this.#isOver && !this.#isParked) this.#finish()
    }
  }

  /** Cancels the call at the backend. */
  end(reason: string): void {
    this.#isParked = false
    if (!this.#abort.signal.aborted) this.#abort.abort(new ThvError('aborted', reason))
    if (this.#isOver) this.#finish()
  }

  /** A backend need not wait for its answers. The outcome is kept for a client that is expected back: the call has run. */
  #over(isClean: boolean): void {
    this.#isOver = true
    this.#gather?.cancel()
    for (const { reject } of this.#questions.values()) reject(new ThvError('aborted', 'the call has ended'))
    this.#questions.clear()
    this.#options.onOver(isClean)
    if (!this.#isParked) this.#finish()
  }

  #finish(): void {
    this.#expiry?.cancel()
    this.#options.onEnd()
  }
}

const KINDS: Readonly<Record<string, string>> = {
  [METHODS.createMessage]: 'sampling',
  [METHODS.elicit]: 'elicitation',
  [METHODS.rootsList]: 'roots',
}
