import type { Clock } from '@thv/kernel/clock'
import type { AuthStore } from '@thv/store/auth/auth-store'

/** More are only in the store: refresh tokens of theirs are gone there, and access tokens end by themselves. */
const MAX_FAMILIES = 100_000

/** Families whose access tokens are rejected before they expire. Follows the store. */
export class RevokedFamilies implements Disposable {
  readonly #until = new Map<string, number>()
  readonly #clock: Clock
  readonly #observer: Disposable

  constructor(store: AuthStore, clock: Clock) {
    this.#clock = clock
    this.#observer = store.observeRevocations((family, ttlMs) => this.#add(family, ttlMs))
  }

  has(family: unknown): boolean {
    if (this.#until.size === 0 || typeof family !== 'string') return false
    return (this.#until.get(family) ?? 0) > this.#clock.monotonic()
  }

  #add(family: string, ttlMs: number): void {
    const now = this.#clock.monotonic()
    this.#until.set(family, now + ttlMs)
    if (this.#until.size <= MAX_FAMILIES) return
    for (const [known, until] of this.#until) if (until <= now) this.#until.delete(known)
    while (this.#until.size > MAX_FAMILIES) this.#until.delete(this.#until.keys().next().value ?? '')
  }

  [Symbol.dispose](): void {
    this.#observer[Symbol.dispose]()
  }
}
