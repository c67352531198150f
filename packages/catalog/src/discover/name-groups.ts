import { compareCodePoints } from '../text.ts'
import { addTo, removeFrom } from './dependents.ts'
import { distinctNames, type NameClaim } from './entry/server-names.ts'

/**
 * Names of new entries. Resources that share a namespace and name form a group, and a name with a suffix may be that of another
 * group, so all groups of a namespace that need suffixes are settled together, in the order of their names.
 */
export class NameGroups {
  readonly #groups = new Map<string, Set<string>>()
  readonly #crowdedByNamespace = new Map<string, Set<string>>()
  readonly #suffixed = new Map<string, ReadonlySet<string>>()

  add(base: string, resource: string): void {
    addTo(this.#groups, base, resource)
  }

  remove(base: string, resource: string): void {
    removeFrom(this.#groups, base, resource)
  }

  /** The names of all resources whose name may have changed with those groups. Undefined: no name is free. */
  settle(
    dirty: readonly { readonly base: string; readonly namespace: string }[],
    claimOf: (resource: string) => NameClaim,
  ): Map<string, string | undefined> {
    const bases = new Set<string>()
    for (const { base, namespace } of dirty) {
      bases.add(base)
      const crowded = (this.#groups.get(base)?.size ?? 0) > 1
      if (crowded) addTo(this.#crowdedByNamespace, namespace, base)
      else removeFrom(this.#crowdedByNamespace, namespace, base)
    }
    for (const { namespace } of dirty) for (const base of this.#crowdedByNamespace.get(namespace) ?? []) bases.add(base)
    for (const base of bases) this.#suffixed.delete(base)

    const names = new Map<string, string | undefined>()
    for (const base of [...bases].sort(compareCodePoints)) {
      const resources = [...(this.#groups.get(base) ?? [])].sort(compareCodePoints)
      if (resources.length === 0) continue
      const settled = distinctNames(base, resources.map(claimOf), (name) => this.#isTaken(name))
      if (resources.length > 1) this.#suffixed.set(base, new Set(settled.filter((name) => name !== undefined)))
      for (const [i, resource] of resources.entries()) names.set(resource, settled[i])
    }
    return names
  }

  #isTaken(name: string): boolean {
    if (this.#groups.has(name)) return true
    for (const names of this.#suffixed.values()) if (names.has(name)) return true
    return false
  }
}
