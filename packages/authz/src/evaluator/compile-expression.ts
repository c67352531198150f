import { isObject } from '@thv/kernel/json'
import { mayHave } from './entities.ts'
import { type Env, type Evaluate, isIn, memberOf } from './environment.ts'
import { argumentFailure, EXTENSION_FUNCTIONS } from './extensions.ts'
import { UnsupportedPolicy, valueOfJson } from './json-value.ts'
import { compilePattern } from './like-pattern.ts'
import { binaryOperators } from './operators.ts'
import { CedarRecord, CedarSet, EntityUid, Failure, isIncomplete, isLong, type Outcome, typeFailure, UNKNOWN, type Value } from './value.ts'

type Json = Readonly<Record<string, unknown>>
type Compile = (body: Json) => Evaluate

/** One closure per node of the JSON form. Throws UnsupportedPolicy for a node it does not know. */
export function compileExpression(expression: unknown): Evaluate {
  const entries = Object.entries(expression as Json)
  const [entry] = entries
  if (entry === undefined || entries.length !== 1) throw new UnsupportedPolicy('an expression has exactly one operator')
  const [operator, body] = entry
  const compile = NODES[operator]
  if (compile !== undefined) return compile(body as Json)
  const binary = binaryOperators[operator]
  if (binary !== undefined) {
    const { left, right } = operands(body as Json)
    return (env) => binary(left(env), right(env), env)
  }
  if (EXTENSION_FUNCTIONS.has(operator)) return extensionCall(operator, body as unknown as readonly unknown[])
  throw new UnsupportedPolicy(`the operator ${operator} is not supported`)
}

const NODES: Readonly<Record<string, Compile>> = {
  Value: (json) => {
    const value = valueOfJson(json)
    return () => value
  },
  Var: (name) => variable(String(name)),
  Set: (items) => compileSet((items as unknown as readonly unknown[]).map(compileExpression)),
  Record: (members) => compileRecord(Object.entries(members).map(([name, member]) => [name, compileExpression(member)])),
  '!': ({ arg }) => {
    const inner = compileExpression(arg)
    return (env) => {
      const value = inner(env)
      if (typeof value === 'boolean') return !value
      return isOpen(value) ? value : typeFailure('bool', value)
    }
  },
  neg: ({ arg }) => {
    const inner = compileExpression(arg)
    return (env) => {
      const value = inner(env)
      if (typeof value === 'bigint') return isLong(-value) ? -value : new Failure('integer overflow while negating')
      return isOpen(value) ? value : typeFailure('long', value)
    }
  },
  '&&': (body) => {
    const { left, right } = operands(body)
    return (env) => {
      const first = left(env)
      if (first === false) return false
      if (first !== true && first !== UNKNOWN) return first instanceof Failure ? first : typeFailure('bool', first)
      const second = right(env)
      // Whatever the unknown part turns out to be, the whole cannot become true.
      if (first === UNKNOWN) return second === false ? false : UNKNOWN
      return typeof second === 'boolean' || isOpen(second) ? second : typeFailure('bool', second)
    }
  },
  '||': (body) => {
    const { left, right } = operands(body)
    return (env) => {
      const first = left(env)
      if (first === true) return true
      if (first !== false && first !== UNKNOWN) return first instanceof Failure ? first : typeFailure('bool', first)
      // The unknown part may be true, and then the rest is not evaluated.
      if (first === UNKNOWN) return UNKNOWN
      const second = right(env)
      return typeof second === 'boolean' || isOpen(second) ? second : typeFailure('bool', second)
    }
  },
  'if-then-else': ({ if: condition, then, else: otherwise }) => {
    const [test, yes, no] = [compileExpression(condition), compileExpression(then), compileExpression(otherwise)]
    return (env) => {
      const value = test(env)
      if (value === true) return yes(env)
      if (value === false) return no(env)
      return isOpen(value) ? value : typeFailure('bool', value)
    }
  },
  '.': ({ left, attr }) => {
    const inner = compileExpression(left)
    const name = String(attr)
    if (lacks(left, name)) return (env) => failureOf(inner(env)) ?? new Failure(`record does not have the attribute \`${name}\``)
    return (env) => memberOf(inner(env), name, env)
  },
  has: ({ left, attr }) => {
    const inner = compileExpression(left)
    const path = (Array.isArray(attr) ? attr : [attr]).map(String)
    return (env) => hasPath(inner(env), path, env)
  },
  like: ({ left, pattern }) => {
    const inner = compileExpression(left)
    const matches = compilePattern(pattern as readonly unknown[])
    return (env) => {
      const value = inner(env)
      if (typeof value === 'string') return matches(value)
      return isOpen(value) ? value : typeFailure('string', value)
    }
  },
  is: ({ left, entity_type: type, in: ancestor }) => {
    const inner = compileExpression(left)
    const above = ancestor === undefined ? undefined : compileExpression(ancestor)
    return (env) => {
      const value = inner(env)
      if (isOpen(value)) return value
      if (!(value instanceof EntityUid)) return typeFailure('an entity', value)
      if (value.type !== type) return false
      return above === undefined ? true : isIn(value, above(env), env)
    }
  },
  isEmpty: ({ arg }) => {
    const inner = compileExpression(arg)
    return (env) => {
      const value = inner(env)
      if (value instanceof CedarSet) return value.items.size === 0
      return isOpen(value) ? value : typeFailure('set', value)
    }
  },
}

function operands({ left, right }: Json): { left: Evaluate; right: Evaluate } {
  return { left: compileExpression(left), right: compileExpression(right) }
}

function variable(name: string): Evaluate {
  switch (name) {
    case 'principal':
      return (env) => env.principal
    case 'action':
      return (env) => env.action
    case 'resource':
      return (env) => env.resource
    case 'context':
      return (env) => env.context
    default:
      throw new UnsupportedPolicy(`the variable ${name} is not supported`)
  }
}

/** True for a record that is written in the policy without this member: what its members are does not matter. */
function lacks(left: unknown, name: string): boolean {
  const members: unknown = isObject(left) ? left['Record'] : undefined
  return isObject(members) && !Object.hasOwn(members, name)
}

function failureOf(value: Outcome): Failure | undefined {
  return value instanceof Failure ? value : undefined
}

function isOpen(value: Outcome): value is Failure | typeof UNKNOWN {
  return value === UNKNOWN || value instanceof Failure
}

/** A failure of any part is the failure of the whole, also behind an unknown part. */
function collect(
  parts: readonly Evaluate[],
  env: Env,
  isOpenPart: (value: Value) => boolean = isIncomplete,
): Value[] | Failure | typeof UNKNOWN {
  const values: Value[] = []
  let unknown = false
  for (const part of parts) {
    const value = part(env)
    if (value instanceof Failure) return value
    if (value === UNKNOWN || isOpenPart(value)) unknown = true
    else values.push(value)
  }
  return unknown ? UNKNOWN : values
}

const none = () => false

function compileSet(parts: readonly Evaluate[]): Evaluate {
  return (env) => {
    const values = collect(parts, env)
    return Array.isArray(values) ? new CedarSet(values) : values
  }
}

function compileRecord(members: readonly (readonly [string, Evaluate])[]): Evaluate {
  const names = members.map(([name]) => name)
  const parts = members.map(([, part]) => part)
  return (env) => {
    const values = collect(parts, env, none) // a record may hold one that is known in part
    return Array.isArray(values) ? new CedarRecord(new Map(values.map((value, at) => [names[at] ?? '', value]))) : values
  }
}

/** `x has a.b.c`: false as soon as one of them is missing. */
function hasPath(value: Outcome, path: readonly string[], env: Env): Outcome {
  let current = value
  for (const [at, name] of path.entries()) {
    if (isOpen(current)) return current
    const there = hasMember(current, name, env)
    if (there !== true) return there
    if (at < path.length - 1) current = memberOf(current, name, env)
  }
  return true
}

function hasMember(value: Value, name: string, env: Env): Outcome {
  if (value instanceof CedarRecord) return value.members.has(name) ? true : value.isUnknown(name) ? UNKNOWN : false
  if (!(value instanceof EntityUid)) return typeFailure('record or entity', value)
  const entity = env.entities.get(value.key)
  if (entity === undefined) return false
  if (entity.attributes.has(name)) return true
  return mayHave(entity, name) ? UNKNOWN : false
}

function extensionCall(name: string, args: readonly unknown[]): Evaluate {
  const fn = EXTENSION_FUNCTIONS.get(name)
  if (fn === undefined || fn.takes.length !== args.length) throw new UnsupportedPolicy(`${name} does not take ${args.length} arguments`)
  const parts = args.map(compileExpression)
  const { takes } = fn
  return (env) => {
    const values: Value[] = []
    let unknown = false
    for (const [at, part] of parts.entries()) {
      const value = part(env)
      if (value instanceof Failure) return value
      if (value === UNKNOWN) {
        unknown = true
        continue
      }
      const failure = argumentFailure(takes[at] ?? 'string', value)
      if (failure !== undefined) return failure
      values.push(value)
    }
    return unknown ? UNKNOWN : fn.apply(...(values as never[]))
  }
}
