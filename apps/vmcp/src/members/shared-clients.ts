import { unavailable } from '@thv/gateway/response/backend-rejection'
import type { McpClient } from '@thv/mcp/client/mcp-client'
import { errorObjectOf } from '@thv/mcp/wire-errors'
import { mayHoldMore } from '@thv/store/fair-share'
import { fairOrder } from './fair-order.ts'
import { LocalRefusal } from './local-refusal.ts'
import { SharedClient } from './shared-client.ts'

export interface SharedClientsOptions {
  readonly backend: string
  open(): McpClient
  /** Clients of all callers together; each may hold a session at the backend. */
  readonly limit?: number
}

/** An open client. */
export interface OpenClient {
  readonly client: McpClient
  readonly party: string
  /** Requests and subscriptions that are under way. */
  uses: number
}

const LIMIT = 1_000

/**
 * Clients of one backend by class of credentials and headers. When there are too many, the party that has the most loses the one that it used
 * longest ago, but none with a call under way. A call is refused where its party has too many under way already: one party alone may use most of
 * the room, as users behind one gateway do, and others find some in any case.
 */
export class SharedClients {
  readonly #options: SharedClientsOptions
  /** The one that was used longest ago first. */
  readonly #kept = new Map<string, OpenClient>()
  /** By party, its clients with a call under way. */
  readonly #busy = new Map<string, number>()
  #busyInAll = 0

  constructor(options: SharedClientsOptions) {
    this.#options = options
  }

  get size(): number {
    return this.#kept.size
  }

  /** Connects when it is used, and again where it had to leave since. */
  of(key: string, party: string): McpClient {
    return new SharedClient({
      take: () => this.#take(key, party),
      done: (open) => this.#done(open),
      now: () => this.#kept.get(key)?.client,
      end: () => this.#drop(key),
    })
  }

  async close(): Promise<void> {
    const all = [...this.#kept.values()]
    this.#kept.clear()
    await Promise.all(all.map(({ client }) => client.close()))
  }

  /** Throws LocalRefusal where there is no room. The caller says when it is done. */
  #take(key: string, party: string): OpenClient {
    const known = this.#kept.get(key)
    const isIdle = known === undefined || known.uses === 0
    if (isIdle) this.#admit(known?.party ?? party)
    const open = known ?? { client: this.#options.open(), party, uses: 0 }
    this.#kept.delete(key)
    this.#kept.set(key, open)
    if (isIdle) this.#count(open.party, 1)
    open.uses++
    if (known === undefined) this.#makeRoom()
    return open
  }

  #done(open: OpenClient): void {
    if (--open.uses === 0) this.#count(open.party, -1)
  }

  #admit(party: string): void {
    const { limit = LIMIT, backend } = this.#options
    const own = this.#busy.get(party) ?? 0
    const used = this.#busyInAll
    if (mayHoldMore({ own, used, limit })) return
    const rejection = unavailable(used < limit ? 'too many of your calls are under way' : 'too many callers use it at once')
    throw new LocalRefusal(errorObjectOf({ ...rejection, data: { ...rejection.data, reason: 'busy', backend } }))
  }

  #count(party: string, by: 1 | -1): void {
    this.#busyInAll += by
    const own = (this.#busy.get(party) ?? 0) + by
    if (own > 0) this.#busy.set(party, own)
    else this.#busy.delete(party)
  }

  /** The newcomer has a call under way, so it stays. */
  #makeRoom(): void {
    const { limit = LIMIT } = this.#options
    if (this.#kept.size <= limit) return
    const { value: key } = fairOrder(this.#kept, { canSpare: ({ uses }) => uses === 0 }).next()
    if (typeof key === 'string') void this.#drop(key)
  }

  async #drop(key: string): Promise<void> {
    const kept = this.#kept.get(key)
    if (kept === undefined) return
    this.#kept.delete(key)
    await kept.client.close()
  }
}
