import { UnsupportedPolicy, uidOfJson, valueOfJson } from './json-value.ts'
import type { EntityUid, Value } from './value.ts'

export interface Entity {
  readonly uid: EntityUid
  readonly attributes: ReadonlyMap<string, Value>
  readonly tags: ReadonlyMap<string, Value>
  /** Keys of all ancestors, not only of the parents. */
  readonly ancestors: ReadonlySet<string>
  /** Attributes of this prefix are not known. */
  readonly unknownPrefix?: string | undefined
}

export interface Entities {
  get(key: string): Entity | undefined
}

const NONE: ReadonlyMap<string, Value> = new Map()

/** Entities that the administrator wrote down, with their ancestors. */
export class EntityStore implements Entities {
  readonly #entities = new Map<string, Entity>()

  /** `entities`: in Cedar's JSON form. Throws UnsupportedPolicy where the form is wrong. */
  constructor(entities: readonly unknown[] = []) {
    const parents = new Map<string, readonly string[]>()
    const parsed = entities.map((json) => {
      const { uid, attrs = {}, tags = {}, parents: of = [] } = json as Record<string, unknown>
      const id = uidOfJson(uid)
      if (parents.has(id.key)) throw new UnsupportedPolicy(`the entity ${id} is there twice`)
      parents.set(
        id.key,
        (of as unknown[]).map((parent) => uidOfJson(parent).key),
      )
      return { uid: id, attributes: membersOf(attrs), tags: membersOf(tags) }
    })
    for (const entity of parsed)
      this.#entities.set(entity.uid.key, { ...entity, ancestors: ancestorsOf(parents.get(entity.uid.key) ?? [], parents) })
  }

  get(key: string): Entity | undefined {
    return this.#entities.get(key)
  }

  /** Keys of the entities that have this ancestor. */
  descendantsOf(key: string): string[] {
    return [...this.#entities.values()].filter(({ ancestors }) => ancestors.has(key)).map(({ uid }) => uid.key)
  }

  /** The ancestors of an entity that is known by its parents only. */
  ancestorsOf(parents: readonly EntityUid[]): ReadonlySet<string> {
    const ancestors = new Set<string>()
    for (const { key } of parents) {
      ancestors.add(key)
      for (const further of this.#entities.get(key)?.ancestors ?? []) ancestors.add(further)
    }
    return ancestors
  }
}

function membersOf(json: unknown): ReadonlyMap<string, Value> {
  const entries = Object.entries(json as Record<string, unknown>)
  return entries.length === 0 ? NONE : new Map(entries.map(([name, member]) => [name, valueOfJson(member)]))
}

function ancestorsOf(direct: readonly string[], parents: ReadonlyMap<string, readonly string[]>): ReadonlySet<string> {
  const found = new Set<string>()
  const open = [...direct]
  for (let key = open.pop(); key !== undefined; key = open.pop()) {
    if (found.has(key)) continue
    found.add(key)
    open.push(...(parents.get(key) ?? []))
  }
  return found
}
