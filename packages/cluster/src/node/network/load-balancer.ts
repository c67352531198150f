import type { Clock } from '@thv/kernel/clock'
import { type Backend, backendKey } from './service-endpoints.ts'

/** After a failed attempt a backend is the last resort for so long. */
const AVOID_MS = 1_000
const MAX_CLIENTS = 4_096

/** Which backend is next: the one with the fewest connections, in turn among equals; with affinity the one that the client had. */
export class LoadBalancer {
  readonly #clock: Clock
  #backends: readonly Backend[] = []
  #affinityMs: number | undefined
  #turn = 0
  readonly #active = new Map<string, number>()
  readonly #avoidUntil = new Map<string, number>()
  /** In the order of their last use. */
  readonly #clients = new Map<string, { readonly key: string; readonly usedAt: number }>()

  constructor(clock: Clock) {
    this.#clock = clock
  }

  get size(): number {
    return this.#backends.length
  }

  set(backends: readonly Backend[], affinityMs: number | undefined): void {
    this.#backends = backends
    this.#affinityMs = affinityMs
    if (affinityMs === undefined) this.#clients.clear()
    const keys = new Set(backends.map(backendKey))
    for (const key of this.#avoidUntil.keys()) if (!keys.has(key)) this.#avoidUntil.delete(key)
  }

  /** All of them, in the order to try. */
  candidates(client: string): readonly Backend[] {
    const now = this.#clock.monotonic()
    const own = this.#ownOf(client, now)
    const turn = this.#turn++ % Math.max(1, this.#backends.length)
    const inTurn = [...this.#backends.slice(turn), ...this.#backends.slice(0, turn)]
    const rank = (backend: Backend) => {
      const key = backendKey(backend)
      const avoided = (this.#avoidUntil.get(key) ?? 0) > now
      return { backend, last: avoided ? 2 : key === own ? 0 : 1, active: this.#active.get(key) ?? 0 }
    }
    const ranked = inTurn.map(rank).toSorted((a, b) => a.last - b.last || a.active - b.active)
    return ranked.map(({ backend }) => backend)
  }

  /** The client was given this backend. */
  keep(client: string, backend: Backend): void {
    if (this.#affinityMs === undefined) return
    this.#clients.delete(client)
    this.#clients.set(client, { key: backendKey(backend), usedAt: this.#clock.monotonic() })
    const oldest = this.#clients.keys().next().value
    if (this.#clients.size > MAX_CLIENTS && oldest !== undefined) this.#clients.delete(oldest)
  }

  opened(backend: Backend): void {
    const key = backendKey(backend)
    this.#avoidUntil.delete(key)
    this.#active.set(key, (this.#active.get(key) ?? 0) + 1)
  }

  closed(backend: Backend): void {
    const key = backendKey(backend)
    const left = (this.#active.get(key) ?? 0) - 1
    if (left > 0) this.#active.set(key, left)
    else this.#active.delete(key)
  }

  failed(backend: Backend): void {
    this.#avoidUntil.set(backendKey(backend), this.#clock.monotonic() + AVOID_MS)
  }

  #ownOf(client: string, now: number): string | undefined {
    const known = this.#affinityMs === undefined ? undefined : this.#clients.get(client)
    return known !== undefined && now - known.usedAt < (this.#affinityMs ?? 0) ? known.key : undefined
  }
}
