import { type Static, type TObject, type TProperties, type TSchema, Type } from 'typebox'
import type { CelRule } from './cel.ts'

/*
 * The only building blocks a resource schema may use. Kubernetes accepts a "structural" subset of JSON Schema: no `const`, no
 * `$ref`, no `patternProperties`, no `type` below `anyOf`. Every block takes its description first, so that none can lack one.
 *
 * A field with a default is always optional: the server refuses a default for a required field of a defaulted object.
 * A field that has a second spelling carries no default at all: `normalise()` fills it in, because a stored default could not be
 * told from a wish.
 */

interface StringOptions {
  minLength?: number
  maxLength?: number
  pattern?: string
  format?: string
  default?: string
  rules?: readonly CelRule[]
}

export const str = (description: string, options: StringOptions = {}) =>
  Type.Unsafe<string>({ type: 'string', description, ...withRules(options) })

/** A string out of a fixed list. */
export const oneOf = <const V extends readonly string[]>(
  description: string,
  values: V,
  options: { default?: V[number]; rules?: readonly CelRule[] } = {},
) => Type.Unsafe<V[number]>({ type: 'string', description, enum: values, ...withRules(options) })

/** A duration in Go syntax, such as `1m30s`. */
export const duration = (description: string, options: { default?: string } = {}) =>
  str(description, { pattern: DURATION_PATTERN, maxLength: 64, ...options })

export const DURATION_PATTERN = '^([0-9]+(\\.[0-9]+)?(ns|us|µs|ms|s|m|h))+$'

interface IntegerOptions {
  minimum?: number
  maximum?: number
  default?: number
}

export const int32 = (description: string, options: IntegerOptions = {}) =>
  Type.Unsafe<number>({ type: 'integer', format: 'int32', description, ...options })

export const int64 = (description: string, options: IntegerOptions = {}) =>
  Type.Unsafe<number>({ type: 'integer', format: 'int64', description, ...options })

export const port = (description: string, options: { default?: number } = {}) =>
  int32(description, { minimum: 1, maximum: 65535, ...options })

export const bool = (description: string, options: { default?: boolean } = {}) =>
  Type.Unsafe<boolean>({ type: 'boolean', description, ...options })

interface ListOptions {
  minItems?: number
  maxItems?: number
  /** `atomic`: replaced as a whole by server-side apply; `set`: unique values; a list of names: objects keyed by these fields. */
  merge?: 'atomic' | 'set' | readonly string[]
  rules?: readonly CelRule[]
}

export const list = <I extends TSchema>(description: string, items: I, options: ListOptions = {}) => {
  const { merge = 'atomic', ...rest } = options
  const kind =
    typeof merge === 'string'
      ? { 'x-kubernetes-list-type': merge }
      : { 'x-kubernetes-list-type': 'map', 'x-kubernetes-list-map-keys': merge }
  return Type.Unsafe<Static<I>[]>({ type: 'array', description, items, ...kind, ...withRules(rest) })
}

interface MapOptions {
  minProperties?: number
  maxProperties?: number
  rules?: readonly CelRule[]
}

export const map = <V extends TSchema>(description: string, values: V, options: MapOptions = {}) =>
  Type.Unsafe<Record<string, Static<V>>>({ type: 'object', description, additionalProperties: values, ...withRules(options) })

/** Labels, annotations and the like. */
export const stringMap = (description: string, options: MapOptions = {}) =>
  map(description, Type.Unsafe<string>({ type: 'string', description: 'The value.' }), options)

export interface Demand {
  required: readonly string[]
  properties?: Readonly<Record<string, Demand>>
}

interface ObjectOptions {
  rules?: readonly CelRule[]
  default?: Record<string, unknown>
  minProperties?: number
  /** Structural only as long as the alternatives do nothing but require fields, their own or deeper ones. */
  anyOf?: readonly Demand[]
}

export const obj = <P extends TProperties>(description: string, properties: P, options: ObjectOptions = {}): TObject<P> =>
  Type.Object(properties, { description, ...withRules(options) })

/** Leaves a field out of the required ones. */
export const opt = Type.Optional

/** An object whose inside the server neither checks nor prunes; code does. Rules can see it, but not its members. */
export const free = <T = Record<string, unknown>>(description: string, options: { rules?: readonly CelRule[] } = {}) =>
  Type.Unsafe<T>({ type: 'object', description, 'x-kubernetes-preserve-unknown-fields': true, ...withRules(options) })

/** Any JSON value. No rule, not even the parent's, can see a node without a type. */
export const anyValue = (description: string) => Type.Unsafe<unknown>({ description, 'x-kubernetes-preserve-unknown-fields': true })

export const intOrString = (description: string) => Type.Unsafe<number | string>({ description, 'x-kubernetes-int-or-string': true })

/**
 * `name` or `{name}`. A node without a type is invisible to rules, and these checks bite only on values of their own JSON type:
 * a number or a list still passes admission, so `normalise()` reports it.
 */
export const nameOrRef = (description: string) =>
  Type.Unsafe<string | { name: string }>({
    description,
    'x-kubernetes-preserve-unknown-fields': true,
    minLength: 1,
    maxLength: 253,
    required: ['name'],
    properties: { name: { type: 'string', minLength: 1, maxLength: 253, description: 'Name of the object, in the same namespace.' } },
    maxProperties: 1,
    not: { enum: [true, false] },
  })

/**
 * A field that protects something and that is not built: pruning it in silence would leave a door open, so the server refuses it.
 * @param instead what to use in its place; part of the message
 */
export const rejected = (instead: string) =>
  Type.Unsafe<Record<string, unknown>>({
    type: 'object',
    description: `Not supported: ${instead}.`,
    'x-kubernetes-preserve-unknown-fields': true,
    ...withRules({ rules: [{ rule: 'false', message: `not supported: ${instead}`, reason: 'FieldValueForbidden' }] }),
    [REJECTED]: true,
  })

/** Marks a node of `rejected()`; keys that begin with `~` never leave this package. */
export const REJECTED = '~rejected'

function withRules<O extends { rules?: readonly CelRule[] }>(options: O) {
  const { rules, ...rest } = options
  return rules && rules.length > 0 ? { ...rest, 'x-kubernetes-validations': rules } : rest
}
