import type { Clock } from '@thv/kernel/clock'
import { withTimeLimit } from '@thv/kernel/deadline'
import type { JsonObject } from '@thv/mcp/json-rpc'
import type { Log } from '@thv/telemetry/log'
import type { BackendLists } from '../aggregate/backend-lists.ts'
import { failureText } from './failure-text.ts'
import { LIST_KINDS, loadLists, noLists } from './load-lists.ts'
import type { Member } from './member.ts'
import { outgoingScope } from './outgoing-scope.ts'

export interface ListsBeforeLoginOptions {
  readonly member: Member
  readonly clock: Clock
  readonly log: Log
}

const ASK_EVERY_MS = 300_000
const LIST_TIMEOUT_MS = 15_000

/**
 * Lists of a backend for callers who have not logged in to its provider yet: those that it shows without a login, else the items that its last two users
 * both see. An item that only one user sees may be about that user, and is not shown to others.
 */
export class ListsBeforeLogin {
  readonly #options: ListsBeforeLoginOptions
  #open: BackendLists | undefined
  #common: BackendLists | undefined
  #last: { readonly user: string; readonly lists: BackendLists } | undefined
  #askAt = Number.NEGATIVE_INFINITY
  #asking: Promise<void> | undefined

  constructor(options: ListsBeforeLoginOptions) {
    this.#options = options
  }

  /** A user who has logged in sees these lists. */
  learn(user: string, lists: BackendLists): void {
    const last = this.#last
    if (last !== undefined && last.user !== user) this.#common = last.lists === lists ? lists : commonLists(last.lists, lists)
    this.#last = { user, lists }
  }

  async current(): Promise<BackendLists> {
    const { clock, member } = this.#options
    if (clock.monotonic() >= this.#askAt)
      this.#asking ??= outgoingScope
        .exit(() => this.#ask())
        .finally(() => {
          this.#askAt = clock.monotonic() + ASK_EVERY_MS * (1 - Math.random() / 10)
          this.#asking = undefined
        })
    await this.#asking
    return this.#open ?? this.#common ?? noLists(member.name)
  }

  async #ask(): Promise<void> {
    const { member, clock, log } = this.#options
    const limit = { clock, timeoutMs: LIST_TIMEOUT_MS, what: 'listing', signals: [member.signal] }
    try {
      const { lists: loaded } = await withTimeLimit(limit, (signal) =>
        member.observed(() => loadLists(member, { kinds: LIST_KINDS, log, signal })),
      )
      const lists = { ...noLists(member.name), ...loaded }
      this.#open = LIST_KINDS.some((kind) => lists[kind].length > 0) ? lists : undefined
    } catch (error) {
      this.#open = undefined
      log.debug('a backend lists nothing without a login', { backend: member.name, error: failureText(error) })
    }
  }
}

/** Items of the second that are the same in the first. Pure. */
export function commonLists(a: BackendLists, b: BackendLists): BackendLists {
  const shared = (ofA: readonly JsonObject[], ofB: readonly JsonObject[]) => {
    const known = new Set(ofA.map((item) => JSON.stringify(item)))
    return ofB.filter((item) => known.has(JSON.stringify(item)))
  }
  const lists = LIST_KINDS.map((kind) => [kind, shared(a[kind], b[kind])] as const)
  return { ...noLists(b.backend), ...Object.fromEntries(lists) }
}
