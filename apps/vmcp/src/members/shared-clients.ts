import { unavailable } from '@thv/gateway/response/backend-rejection'
import type { McpClient } from '@thv/mcp/client/mcp-client'
import { errorObjectOf } from '@thv/mcp/wire-errors'
import { LocalRefusal } from './local-refusal.ts'
import { SharedClient } from './shared-client.ts'

export interface SharedClientsOptions {
  readonly backend: string
  open(): McpClient
  /** Clients of all callers together, and of one party; each may hold a session at the backend. */
  readonly limits?: { readonly all: number; readonly perParty: number }
}

/** An open client. */
export interface OpenClient {
  readonly client: McpClient
  /** Requests and subscriptions that are under way. */
  uses: number
}

interface Kept extends OpenClient {
  readonly party: string
}

const LIMITS = { all: 1_000, perParty: 250 }

/**
 * Clients of one backend by class of credentials and headers. When there are too many, the one that was used longest ago leaves, but none with a call under
 * way: where all have one, the newcomer is refused. A party with its full share makes room among its own.
 */
export class SharedClients {
  readonly #options: SharedClientsOptions
  /** The one that was used longest ago first. */
  readonly #kept = new Map<string, Kept>()
  readonly #perParty = new Map<string, number>()

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
      now: () => this.#kept.get(key)?.client,
      end: () => this.#drop(key),
    })
  }

  async close(): Promise<void> {
    const all = [...this.#kept.values()]
    this.#kept.clear()
    this.#perParty.clear()
    await Promise.all(all.map(({ client }) => client.close()))
  }

  /** Throws LocalRefusal where there is no room. The caller counts its use down again. */
  #take(key: string, party: string): OpenClient {
    const known = this.#kept.get(key)
    if (known === undefined) this.#makeRoom(party)
    else this.#kept.delete(key)
    const kept = known ?? { client: this.#options.open(), party, uses: 0 }
    this.#kept.set(key, kept)
    if (known === undefined) this.#perParty.set(party, (this.#perParty.get(party) ?? 0) + 1)
    kept.uses++
    return kept
  }

  #makeRoom(party: string): void {
    const { limits = LIMITS, backend } = this.#options
    const isOverShare = (this.#perParty.get(party) ?? 0) >= limits.perParty
    if (!isOverShare && this.#kept.size < limits.all) return
    for (const [key, kept] of this.#kept) {
      if (kept.uses > 0 || (isOverShare && kept.party !== party)) continue
      void this.#drop(key)
      return
    }
    const rejection = unavailable(isOverShare ? 'too many of your calls are under way' : 'too many callers use it at once')
    throw new LocalRefusal(errorObjectOf({ ...rejection, data: { ...rejection.data, reason: 'busy', backend } }))
  }

  async #drop(key: string): Promise<void> {
    const kept = this.#kept.get(key)
    if (kept === undefined) return
    this.#kept.delete(key)
    const left = (this.#perParty.get(kept.party) ?? 1) - 1
    if (left > 0) this.#perParty.set(kept.party, left)
    else this.#perParty.delete(kept.party)
    await kept.client.close()
  }
}
