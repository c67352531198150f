import { type Env, isIn } from './environment.ts'
import {
  areEqual,
  CedarSet,
  EntityUid,
  Extension,
  Failure,
  isIncomplete,
  isLong,
  type Outcome,
  typeFailure,
  UNKNOWN,
  type Value,
} from './value.ts'

/* Operators with two operands that are always both evaluated. The left one is checked first. */

export type Binary = (left: Outcome, right: Outcome, env: Env) => Outcome

type Known = (left: Value, right: Value, env: Env) => Outcome

/** Failures come before unknowns: nothing the caller sends can mend them. */
function both(apply: Known): Binary {
  return (left, right, env) => {
    if (left instanceof Failure) return left
    if (right instanceof Failure) return right
    if (left === UNKNOWN || right === UNKNOWN) return UNKNOWN
    return apply(left, right, env)
  }
}

/** Equality is unknown for a value that holds unknown members. */
const equals: Known = (a, b) => (isIncomplete(a) || isIncomplete(b) ? UNKNOWN : areEqual(a, b))

function ordering(test: (a: bigint, b: bigint) => boolean): Binary {
  return both((left, right) => {
    if (typeof left === 'bigint') return typeof right === 'bigint' ? test(left, right) : typeFailure('long', right)
    if (left instanceof Extension && (left.type === 'datetime' || left.type === 'duration')) {
      return right instanceof Extension && right.type === left.type ? test(left.number, right.number) : typeFailure(left.type, right)
    }
    return typeFailure('long', left)
  })
}

function arithmetic(name: string, apply: (a: bigint, b: bigint) => bigint): Binary {
  return both((left, right) => {
    if (typeof left !== 'bigint') return typeFailure('long', left)
    if (typeof right !== 'bigint') return typeFailure('long', right)
    const result = apply(left, right)
    return isLong(result) ? result : new Failure(`integer overflow while attempting to ${name}`)
  })
}

function onSets(apply: (a: CedarSet, b: CedarSet) => boolean): Binary {
  return both((left, right) => {
    if (!(left instanceof CedarSet)) return typeFailure('set', left)
    return right instanceof CedarSet ? apply(left, right) : typeFailure('set', right)
  })
}

const everyOf = (set: CedarSet, other: CedarSet) => [...other.items.keys()].every((key) => set.items.has(key))
const someOf = (set: CedarSet, other: CedarSet) => [...other.items.keys()].some((key) => set.items.has(key))

export const binaryOperators: Readonly<Record<string, Binary>> = {
  '==': both(equals),
  '!=': both((a, b, env) => {
    const same = equals(a, b, env)
    return same === UNKNOWN ? UNKNOWN : !same
  }),
  '<': ordering((a, b) => a < b),
  '<=': ordering((a, b) => a <= b),
  '>': ordering((a, b) => a > b),
  '>=': ordering((a, b) => a >= b),
  '+': arithmetic('add', (a, b) => a + b),
  '-': arithmetic('subtract', (a, b) => a - b),
  '*': arithmetic('multiply', (a, b) => a * b),
  in: both((left, right, env) => (left instanceof EntityUid ? isIn(left, right, env) : typeFailure('an entity', left))),
  contains: both((set, item) => {
    if (!(set instanceof CedarSet)) return typeFailure('set', set)
    return isIncomplete(item) ? UNKNOWN : set.has(item)
  }),
  containsAll: onSets(everyOf),
  containsAny: onSets(someOf),
  hasTag: both((entity, name, env) => {
    if (!(entity instanceof EntityUid)) return typeFailure('an entity', entity)
    if (typeof name !== 'string') return typeFailure('string', name)
    return env.entities.get(entity.key)?.tags.has(name) ?? false
  }),
  getTag: both((entity, name, env) => {
    if (!(entity instanceof EntityUid)) return typeFailure('an entity', entity)
    if (typeof name !== 'string') return typeFailure('string', name)
    const known = env.entities.get(entity.key)
    if (known === undefined) return new Failure(`entity \`${entity}\` does not exist`)
    return known.tags.get(name) ?? new Failure(`\`${entity}\` does not have the tag ${JSON.stringify(name)}`)
  }),
}
