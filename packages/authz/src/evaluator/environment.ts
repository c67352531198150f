import { type Entities, mayHave } from './entities.ts'
import { CedarRecord, CedarSet, EntityUid, Failure, type Outcome, typeFailure, UNKNOWN } from './value.ts'

/** One question: who wants to do what to what, and the entities that are known. */
export interface Env {
  readonly principal: EntityUid
  readonly action: EntityUid
  readonly resource: EntityUid
  readonly context: CedarRecord
  readonly entities: Entities
  /** Scopes of the caller, for permits that want some. */
  readonly scopes?: ReadonlySet<string>
}

export type Evaluate = (env: Env) => Outcome

/** An attribute of a record or an entity. */
export function memberOf(value: Outcome, name: string, env: Env): Outcome {
  if (value instanceof CedarRecord) {
    const member = value.members.get(name)
    if (member !== undefined) return member
    return value.isUnknown(name) ? UNKNOWN : new Failure(`record does not have the attribute \`${name}\``)
  }
  if (value instanceof EntityUid) {
    const entity = env.entities.get(value.key)
    if (entity === undefined) return new Failure(`entity \`${value}\` does not exist`)
    const attribute = entity.attributes.get(name)
    if (attribute !== undefined) return attribute
    if (mayHave(entity, name)) return UNKNOWN
    return new Failure(`\`${value}\` does not have the attribute \`${name}\``)
  }
  return value === UNKNOWN || value instanceof Failure ? value : typeFailure('record or entity', value)
}

/** `entity in x`, where x is an entity or a set of entities. */
export function isIn(entity: EntityUid, right: Outcome, env: Env): Outcome {
  if (right instanceof EntityUid) return isWithin(entity, right, env)
  if (right instanceof CedarSet) {
    let found = false
    for (const item of right.items.values()) {
      if (!(item instanceof EntityUid)) return typeFailure('an entity', item)
      found ||= isWithin(entity, item, env)
    }
    return found
  }
  return right === UNKNOWN || right instanceof Failure ? right : typeFailure('an entity or a set of entities', right)
}

export function isWithin(entity: EntityUid, ancestor: EntityUid, env: Env): boolean {
  return entity.key === ancestor.key || (env.entities.get(entity.key)?.ancestors.has(ancestor.key) ?? false)
}
