/** Which routes have asked for which objects, so that a change of one finds the routes to evaluate again. */
export class Dependents {
  readonly #byRoute = new Map<string, ReadonlySet<string>>()
  readonly #byObject = new Map<string, Set<string>>()

  of(object: string): Iterable<string> {
    return this.#byObject.get(object) ?? []
  }

  set(route: string, objects: ReadonlySet<string>): void {
    this.delete(route)
    this.#byRoute.set(route, objects)
    for (const object of objects) addTo(this.#byObject, object, route)
  }

  delete(route: string): void {
    for (const object of this.#byRoute.get(route) ?? []) removeFrom(this.#byObject, object, route)
    this.#byRoute.delete(route)
  }
}

export function addTo(map: Map<string, Set<string>>, key: string, value: string): void {
  const set = map.get(key)
  if (set === undefined) map.set(key, new Set([value]))
  else set.add(value)
}

export function removeFrom(map: Map<string, Set<string>>, key: string, value: string): void {
  const set = map.get(key)
  if (set?.delete(value) && set.size === 0) map.delete(key)
}
