import type { Clock } from '@thv/kernel/clock'
import type { JsonObject } from '@thv/kernel/json'
import { createSingleFlight } from '@thv/kernel/single-flight'
import type { AuthStore } from '@thv/store/auth/auth-store'

const KIND = 'login'
const WEEK_MS = 7 * 24 * 3_600_000
const MAX_FAMILIES = 10_000
/** How long it is remembered that a family was marked, or has joined. */
const KNOWN_MS = 60_000
/** How soon a connected provider counts on other replicas. */
const UNKNOWN_MS = 1_000

/** Which providers a family has logged in to, in the record of its login. */
export class FamilyLogins {
  readonly #store: AuthStore
  readonly #clock: Clock
  readonly #familyMs: number
  /** Already marked: a client that goes on calling costs the store nothing. */
  readonly #ended = new Map<string, number>()
  readonly #joined = new Map<string, { readonly isJoined: boolean; readonly at: number }>()
  readonly #writes = createSingleFlight<string, void>()
  readonly #reads = createSingleFlight<string, boolean>()

  constructor(store: AuthStore, clock: Clock, familyMs = WEEK_MS) {
    this.#store = store
    this.#clock = clock
    this.#familyMs = familyMs
  }

  /** The tokens at this provider ended when a call needed them. The mark is tried again with the next call if the store is away. */
  end(family: string, provider: string): void {
    const key = keyOf(family, provider)
    if (this.#clock.monotonic() - (this.#ended.get(key) ?? Number.NEGATIVE_INFINITY) < KNOWN_MS) return
    this.#writes
      .run(key, async () => {
        await this.#change(family, ({ ended = [], ...login }) => ({ ...login, ended: [...new Set([...ended, provider])] }))
        this.#ended.set(key, this.#clock.monotonic())
        bound(this.#ended)
      })
      .catch(() => {})
  }

  /** The user has logged in to the provider for this family, after its login. */
  async join(family: string, provider: string): Promise<void> {
    await this.#change(family, ({ providers = [], ended, ...login }) => {
      const left = ended?.filter((each) => each !== provider) ?? []
      return { ...login, providers: [...new Set([...providers, provider])], ...(left.length > 0 && { ended: left }) }
    })
    const key = keyOf(family, provider)
    this.#ended.delete(key)
    this.#remember(key, true)
  }

  /** Whether the family may use the provider. A promise only where it has to be looked up, which rejects with `store_unavailable`. */
  hasJoined(family: string, provider: string): boolean | Promise<boolean> {
    const key = keyOf(family, provider)
    const known = this.#joined.get(key)
    if (known !== undefined && this.#clock.monotonic() - known.at < (known.isJoined ? KNOWN_MS : UNKNOWN_MS)) return known.isJoined
    return this.#reads.run(key, async () => {
      const login = (await this.#store.get(KIND, family))?.value as LoginLists | undefined
      const isJoined = login?.providers?.includes(provider) === true
      this.#remember(key, isJoined)
      return isJoined
    })
  }

  #remember(key: string, isJoined: boolean): void {
    this.#joined.delete(key)
    this.#joined.set(key, { isJoined, at: this.#clock.monotonic() })
    bound(this.#joined)
  }

  /** Changes that other replicas make at the same time are kept. Rejects with `store_unavailable`; the change may be made again then. */
  async #change(family: string, change: (login: LoginLists) => LoginLists): Promise<void> {
    await this.#store.update(KIND, family, { ttlMs: this.#familyMs, family }, (value) => {
      const changed = value && (change(value as LoginLists) as JsonObject)
      return JSON.stringify(changed) === JSON.stringify(value) ? undefined : changed
    })
  }
}

/** The part of a login's record that changes. */
interface LoginLists {
  readonly providers?: readonly string[]
  readonly ended?: readonly string[]
}

function keyOf(family: string, provider: string): string {
  return `${family} ${provider}`
}

function bound(map: Map<string, unknown>): void {
  for (const oldest of map.keys()) {
    if (map.size <= MAX_FAMILIES) return
    map.delete(oldest)
  }
}
