import type { JsonObject } from '@thv/kernel/json'
import { createSingleFlight } from '@thv/kernel/single-flight'
import type { AuthStore } from '@thv/store/auth/auth-store'

const KIND = 'login'
const WEEK_MS = 7 * 24 * 3_600_000
const MAX_FAMILIES = 10_000

/** Which providers a family has logged in to, in the record of its login. */
export class FamilyLogins {
  readonly #store: AuthStore
  readonly #familyMs: number
  /** Already marked: a client that goes on calling costs the store nothing. */
  readonly #ended = new Set<string>()
  readonly #writes = createSingleFlight<string, void>()

  constructor(store: AuthStore, familyMs = WEEK_MS) {
    this.#store = store
    this.#familyMs = familyMs
  }

  /** The tokens at this provider ended when a call needed them. The mark is tried again with the next call if the store is away. */
  end(family: string, provider: string): void {
    const key = `${family} ${provider}`
    if (this.#ended.has(key)) return
    this.#writes
      .run(key, async () => {
        await this.#change(family, 'ended', provider)
        this.#ended.add(key)
        if (this.#ended.size > MAX_FAMILIES) this.#ended.delete(this.#ended.values().next().value ?? '')
      })
      .catch(() => {})
  }

  async #change(family: string, member: 'ended' | 'providers', provider: string): Promise<void> {
    const value = (await this.#store.get(KIND, family))?.value
    if (value === undefined) return
    const known = Array.isArray(value[member]) ? (value[member] as string[]) : []
    if (known.includes(provider)) return
    const changed: JsonObject = { ...value, [member]: [...known, provider] }
    await this.#store.put(KIND, family, { value: changed, ttlMs: this.#familyMs, family })
  }
}
