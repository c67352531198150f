import type { Clock, Timer } from '@thv/kernel/clock'
import type { RequestId } from '@thv/mcp/json-rpc'
import { mintMark } from './id-prefix.ts'

/** A person does not answer more at once. Each is kept until it is answered or given up. */
const MAX_QUESTIONS = 256

/** The questions to one client that have no answer yet, each under an id that no other session knows, and with a time limit. */
export class OpenQuestions<Q> {
  readonly #clock: Clock
  readonly #open = new Map<RequestId, { readonly question: Q; readonly timer: Timer }>()
  readonly #mark = mintMark()
  #asked = 0

  constructor(clock: Clock) {
    this.#clock = clock
  }

  get size(): number {
    return this.#open.size
  }

  /** No further question may be put. */
  get isFull(): boolean {
    return this.#open.size >= MAX_QUESTIONS
  }

  /** The id of the next question. */
  mintId(): string {
    return `${this.#mark}.${++this.#asked}`
  }

  add(id: RequestId, question: Q, limit: { readonly ms: number; onOver(): void }): void {
    this.#open.set(id, { question, timer: this.#clock.setTimer(limit.ms, () => limit.onOver()) })
  }

  /** Undefined for an id that is not open. */
  get(id: RequestId): Q | undefined {
    return this.#open.get(id)?.question
  }

  /** Removes it. Undefined for an id that is not open. */
  take(id: RequestId): Q | undefined {
    const found = this.#open.get(id)
    this.#open.delete(id)
    found?.timer.cancel()
    return found?.question
  }

  /** The first question that matches, with its id. */
  find(matches: (question: Q) => boolean): readonly [RequestId, Q] | undefined {
    for (const [id, { question }] of this.#open) if (matches(question)) return [id, question]
    return undefined
  }

  /** All ids, also while questions are taken. */
  ids(): readonly RequestId[] {
    return [...this.#open.keys()]
  }
}
