import { createHash, randomUUID } from 'node:crypto'
import { errorMessage } from '@thv/kernel/errors'
import type { JsonValue, SessionStore } from '@thv/store/session-store'
import type { Log } from '@thv/telemetry/log'
import { LocalRefusal } from '../members/local-refusal.ts'

/** States that came back from clients: each leads back once. */
export interface UsedStates {
  /** False: it was used before. Throws a LocalRefusal when that cannot be found out now, or the party has used too many. */
  use(state: string, party: string): boolean | Promise<boolean>
  /** Nothing came of it: the client may come back with the same state. */
  release(state: string): void | Promise<void>
}

/** How long a state is remembered: longer than any is good. */
export const USED_STATES_MS = 600_000
const MAX_USED = 10_000

/**
 * Of this replica. When there are too many, the oldest of the party that used the most is forgotten: a state is of use to its own principal only,
 * and none can make the server forget those of others.
 */
export class LocalUsedStates implements UsedStates {
  readonly #parties = new Map<string, string>()
  readonly #marks = new Map<string, Set<string>>()
  readonly #limit: number

  constructor(limit = MAX_USED) {
    this.#limit = limit
  }

  use(state: string, party: string): boolean {
    const mark = markOf(state)
    if (this.#parties.has(mark)) return false
    this.#parties.set(mark, party)
    const own = this.#marks.get(party)
    if (own === undefined) this.#marks.set(party, new Set([mark]))
    else own.add(mark)
    if (this.#parties.size > this.#limit) this.#forgetOne()
    return true
  }

  release(state: string): void {
    this.#forget(markOf(state))
  }

  #forgetOne(): void {
    let most: ReadonlySet<string> = new Set()
    for (const marks of this.#marks.values()) if (marks.size > most.size) most = marks
    const [oldest] = most
    if (oldest !== undefined) this.#forget(oldest)
  }

  #forget(mark: string): void {
    const party = this.#parties.get(mark)
    if (party === undefined) return
    this.#parties.delete(mark)
    const own = this.#marks.get(party)
    own?.delete(mark)
    if (own?.size === 0) this.#marks.delete(party)
  }
}

/** Of all replicas that share the store. */
export class SharedUsedStates implements UsedStates {
  readonly #store: SessionStore<JsonValue>
  readonly #log: Log
  /** A replica releases only what it has used itself: another one may have used the state with success. */
  readonly #owner = randomUUID()
  readonly #here = new LocalUsedStates()

  constructor(store: SessionStore<JsonValue>, log: Log) {
    this.#store = store
    this.#log = log
  }

  async use(state: string, party: string): Promise<boolean> {
    if (!this.#here.use(state, party)) return false
    const created = this.#store.create({ id: markOf(state), owner: this.#owner, party, value: true }, USED_STATES_MS)
    const outcome = await created.catch((error: unknown) => {
      this.#log.warn('a used state could not be stored', { error: errorMessage(error) })
      return 'unknown' as const
    })
    if (outcome === 'created') return true
    // It may have been stored all the same, and nothing will come of this attempt.
    if (outcome === 'unknown') await this.release(state)
    else this.#here.release(state)
    if (outcome === 'exists') return false
    throw new LocalRefusal({ code: -32603, message: 'The store of the server does not answer; try again', data: { reason: 'busy' } })
  }

  async release(state: string): Promise<void> {
    await this.#store.delete({ id: markOf(state), owner: this.#owner }).catch((error: unknown) => {
      this.#log.warn('a state that was not used could not be released', { error: errorMessage(error) })
    })
    this.#here.release(state)
  }
}

/** Short, and as random as the seal: its last characters are encrypted. */
function markOf(state: string): string {
  return createHash('sha256').update(state).digest('base64url')
}
