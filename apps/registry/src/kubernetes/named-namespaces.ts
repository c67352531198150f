/** Changes of the watches that follow from a change of one route. */
export interface NamespaceChange {
  readonly follow: readonly string[]
  readonly leave: readonly string[]
}

/**
 * Namespaces that routes name, as far as their number allows: each costs an open watch, and routes name namespaces as their authors like.
 * One that no route names any more makes room for one that waits.
 */
export class NamedNamespaces {
  readonly #max: number
  readonly #byRoute = new Map<string, ReadonlySet<string>>()
  /** Routes by the namespace that they name. */
  readonly #named = new Map<string, Set<string>>()
  readonly #followed = new Set<string>()

  constructor(max: number) {
    this.#max = max
  }

  /** Whether some are not followed. */
  get isExceeded(): boolean {
    return this.#followed.size < this.#named.size
  }

  isFollowed(namespace: string): boolean {
    return this.#followed.has(namespace)
  }

  /** The namespaces that a route names now; none for one that is gone. */
  set(route: string, namespaces: ReadonlySet<string>): NamespaceChange {
    const leave: string[] = []
    for (const namespace of this.#byRoute.get(route) ?? []) {
      const routes = this.#named.get(namespace)
      if (namespaces.has(namespace) || !routes?.delete(route) || routes.size > 0) continue
      this.#named.delete(namespace)
      if (this.#followed.delete(namespace)) leave.push(namespace)
    }
    if (namespaces.size === 0) this.#byRoute.delete(route)
    else this.#byRoute.set(route, namespaces)
    for (const namespace of namespaces) this.#named.set(namespace, (this.#named.get(namespace) ?? new Set()).add(route))
    // Only then may one of the others be waiting.
    const candidates = leave.length > 0 ? this.#named.keys() : namespaces
    return { leave, follow: this.#takeRoom(candidates) }
  }

  #takeRoom(candidates: Iterable<string>): readonly string[] {
    const follow: string[] = []
    for (const namespace of candidates) {
      if (this.#followed.size >= this.#max) break
      if (this.#followed.has(namespace)) continue
      this.#followed.add(namespace)
      follow.push(namespace)
    }
    return follow
  }
}
