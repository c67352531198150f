import type { Steps } from '@thv/kernel/steps'
import { UnsupportedPolicy, uidOfJson, valueOfJson } from './json-value.ts'
import type { EntityUid, Members, Value } from './value.ts'

export interface Entity {
  readonly uid: EntityUid
  readonly attributes: Members
  readonly tags: Members
  /** Keys of all ancestors, not only of the parents. */
  readonly ancestors: ReadonlySet<string>
  /** Attributes of this prefix are not known. */
  readonly unknownPrefix?: string | undefined
  /** Further attributes that are not known. */
  readonly unknownNames?: ReadonlySet<string> | undefined
}

/** Whether an attribute that the entity does not have may be there all the same. */
export function mayHave({ unknownPrefix, unknownNames }: Entity, name: string): boolean {
  return (unknownPrefix !== undefined && name.startsWith(unknownPrefix)) || unknownNames?.has(name) === true
}

export interface Entities {
  get(key: string): Entity | undefined
}

const NONE: ReadonlyMap<string, Value> = new Map()

/** Entities that the administrator wrote down, with their ancestors. */
export class EntityStore implements Entities {
  readonly #entities: ReadonlyMap<string, Entity>
  readonly #actionsBelow = new Map<string, string[]>()

  constructor(entities: ReadonlyMap<string, Entity> = new Map()) {
    this.#entities = entities
    for (const { uid, ancestors } of this.#entities.values()) {
      if (!isActionType(uid.type)) continue
      for (const above of ancestors) {
        const below = this.#actionsBelow.get(above)
        if (below === undefined) this.#actionsBelow.set(above, [uid.key])
        else below.push(uid.key)
      }
    }
  }

  get(key: string): Entity | undefined {
    return this.#entities.get(key)
  }

  /** Keys of the actions that have this ancestor. */
  actionsBelow(key: string): readonly string[] {
    return this.#actionsBelow.get(key) ?? []
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

/** Entities and their ancestors. */
const FOUND_PER_STEP = 1_000

/** Reads entities in Cedar's JSON form, and yields now and then: many of them take a while. Throws UnsupportedPolicy where the form is wrong. */
export function* readEntities(lists: Iterable<readonly unknown[]>): Steps<EntityStore> {
  const parents = new Map<string, readonly string[]>()
  const parsed: Omit<Entity, 'ancestors'>[] = []
  for (const list of lists) {
    for (const json of list) {
      const { uid, attrs = {}, tags = {}, parents: of = [] } = json as Record<string, unknown>
      const id = uidOfJson(uid)
      if (parents.has(id.key)) throw new UnsupportedPolicy(`the entity ${id} is there twice`)
      parents.set(
        id.key,
        (of as unknown[]).map((parent) => uidOfJson(parent).key),
      )
      parsed.push({ uid: id, attributes: membersOf(attrs), tags: membersOf(tags) })
    }
    yield
  }
  const entities = new Map<string, Entity>()
  let found = 0
  for (const entity of parsed) {
    const ancestors = ancestorsOf(parents.get(entity.uid.key) ?? [], parents)
    entities.set(entity.uid.key, { ...entity, ancestors })
    found += 1 + ancestors.size
    if (found < FOUND_PER_STEP) continue
    found = 0
    yield
  }
  return new EntityStore(entities)
}

function isActionType(type: string): boolean {
  return type === 'Action' || type.endsWith('::Action')
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
