/*
 * Cedar values at run time. Booleans, strings and bigints (Long) stand for themselves; everything else is one of these classes. `keyOf`
 * gives equal values equal texts, so that equality and membership in sets need no deep comparison.
 */

export type Value = boolean | bigint | string | EntityUid | CedarSet | CedarRecord | Extension

/** The outcome of an expression. Failures are values: throwing would cost more than the whole evaluation. */
export type Outcome = Value | Failure | typeof UNKNOWN

/** Depends on facts, such as the arguments of a call, that are not known. */
export const UNKNOWN: unique symbol = Symbol('unknown')

export class Failure {
  readonly message: string

  constructor(message: string) {
    this.message = message
  }
}

export class EntityUid {
  readonly type: string
  readonly id: string
  /** Equal for equal entities only. */
  readonly key: string

  constructor(type: string, id: string) {
    this.type = type
    this.id = id
    this.key = entityKey(type, id)
  }

  toString(): string {
    return `${this.type}::${JSON.stringify(this.id)}`
  }
}

/** A type has no NUL, so the pair cannot be read in two ways. */
export function entityKey(type: string, id: string): string {
  return `${type}\0${id}`
}

export class CedarSet {
  readonly items: ReadonlyMap<string, Value>
  #key: string | undefined

  constructor(values: Iterable<Value>) {
    const items = new Map<string, Value>()
    for (const value of values) items.set(keyOf(value), value)
    this.items = items
  }

  has(value: Value): boolean {
    return this.items.has(keyOf(value))
  }

  get key(): string {
    this.#key ??= `[${[...this.items.keys()].sort().join()}]`
    return this.#key
  }
}

/** Members of a record or attributes of an entity. A map is one; so is a `LayeredMembers`. */
export interface Members extends Iterable<readonly [string, Value]> {
  get(name: string): Value | undefined
  has(name: string): boolean
}

/** One set of members over another one: saves a copy of both for every question. */
export class LayeredMembers implements Members {
  readonly #upper: Members
  readonly #lower: Members

  constructor(upper: Members, lower: Members) {
    this.#upper = upper
    this.#lower = lower
  }

  get(name: string): Value | undefined {
    return this.#upper.get(name) ?? this.#lower.get(name)
  }

  has(name: string): boolean {
    return this.#upper.has(name) || this.#lower.has(name)
  }

  *[Symbol.iterator](): Iterator<readonly [string, Value]> {
    yield* this.#upper
    for (const entry of this.#lower) if (!this.#upper.has(entry[0])) yield entry
  }
}

export class CedarRecord {
  readonly members: Members
  /** Members of this prefix are not known: they may be there or not, with any value. */
  readonly unknownPrefix: string | undefined
  #key: string | undefined

  constructor(members: Members, unknownPrefix?: string) {
    this.members = members
    this.unknownPrefix = unknownPrefix
  }

  isUnknown(name: string): boolean {
    return this.unknownPrefix !== undefined && name.startsWith(this.unknownPrefix)
  }

  /** True where a member is not known, at any depth. */
  get isIncomplete(): boolean {
    if (this.unknownPrefix !== undefined) return true
    for (const [, member] of this.members) if (member instanceof CedarRecord && member.isIncomplete) return true
    return false
  }

  get key(): string {
    this.#key ??= `{${[...this.members]
      .map(([name, value]) => `${JSON.stringify(name)}:${keyOf(value)}`)
      .sort()
      .join()}}`
    return this.#key
  }
}

export function isIncomplete(value: Value): boolean {
  return value instanceof CedarRecord && value.isIncomplete
}

export type ExtensionType = 'decimal' | 'ipaddr' | 'datetime' | 'duration'

/** A decimal in steps of 10^-4, a time in milliseconds since 1970, a duration in milliseconds, or an address with its prefix. */
export class Extension {
  readonly type: ExtensionType
  readonly number: bigint
  /** Addresses only. */
  readonly bits: number
  readonly prefix: number

  constructor(type: ExtensionType, number: bigint, bits = 0, prefix = 0) {
    this.type = type
    this.number = number
    this.bits = bits
    this.prefix = prefix
  }
}

/** The same text for the same value, whatever the order of sets and records. The first letter keeps types apart. */
export function keyOf(value: Value): string {
  switch (typeof value) {
    case 'string':
      return JSON.stringify(value)
    case 'bigint':
      return `${value}`
    case 'boolean':
      return value ? 'true' : 'false'
    default:
      if (value instanceof EntityUid) return `e${JSON.stringify(value.key)}`
      if (value instanceof Extension) return `x${value.type}(${value.number}/${value.bits}/${value.prefix})`
      return value.key
  }
}

export function areEqual(a: Value, b: Value): boolean {
  if (typeof a !== 'object' || typeof b !== 'object') return a === b
  if (a === b) return true
  if (a instanceof EntityUid) return b instanceof EntityUid && a.key === b.key
  return !(b instanceof EntityUid) && keyOf(a) === keyOf(b)
}

/** In Cedar's words, for messages. */
export function typeName(value: Value): string {
  switch (typeof value) {
    case 'string':
      return 'string'
    case 'bigint':
      return 'long'
    case 'boolean':
      return 'bool'
    default:
      if (value instanceof EntityUid) return `entity of type ${value.type}`
      if (value instanceof CedarSet) return 'set'
      return value instanceof CedarRecord ? 'record' : value.type
  }
}

export function typeFailure(expected: string, value: Value): Failure {
  return new Failure(`type error: expected ${expected}, got ${typeName(value)}`)
}

const MAX_LONG = (1n << 63n) - 1n
const MIN_LONG = -(1n << 63n)

export function isLong(value: bigint): boolean {
  return value <= MAX_LONG && value >= MIN_LONG
}
