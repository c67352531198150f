import { invalid, NO_FIELD, required, tooMany, typeInvalid } from '../field-problems.ts'
import type { Json } from '../kind-schema.ts'
import { isMap, type SchemaNode } from '../schema-node.ts'
import { goQuote } from '../values/go-text.ts'
import type { Failure } from './outcome.ts'
import type { Subject } from './validate-value.ts'

export function typeNames(node: SchemaNode): readonly string[] {
  if (node['x-kubernetes-int-or-string']) return ['integer', 'string']
  return node.type ? [node.type] : []
}

export interface ExpectedType {
  readonly types: readonly string[]
  readonly format: string | undefined
  readonly nullable: boolean
}

export function typeFailure({ types, format, nullable }: ExpectedType, subject: Subject): Failure | undefined {
  const { value } = subject
  const actual = jsonType(value)
  if (value === null) return types.length > 0 && !nullable ? wrongType(subject, types.join(','), actual) : undefined
  const isNumeric = types.includes('number') || types.includes('integer')
  if (format && !isNumeric && (typeof value === 'string' || Array.isArray(value))) return undefined
  const fits = types.includes(actual) || (actual === 'integer' && types.includes('number'))
  return fits ? undefined : wrongType(subject, types.join(','), actual)
}

export function wrongType(subject: Subject, expected: string, actual: string): Failure {
  const text = `${subject.path} in body must be of type ${expected}: ${goQuote(actual)}`
  return { text, problem: typeInvalid(fieldOf(subject), actual, text) }
}

export function missing(subject: Subject, name: string): Failure {
  const path = `${subject.path}.${name}`
  return { text: `${path} in body is required`, problem: required(fieldOf({ ...subject, path })) }
}

/** Number of items or members. */
export function sizeChecks(node: SchemaNode, subject: Subject): Failure[] {
  const { value, path } = subject
  const failures: Failure[] = []
  const isList = Array.isArray(value)
  const size = isList ? value.length : isMap(value) ? Object.keys(value).length : 0
  const [min, max, what] = isList ? [node.minItems, node.maxItems, 'items'] : [node.minProperties, node.maxProperties, 'properties']
  if (min !== undefined && size < min) {
    const text = `${path} in body should have at least ${min} ${what}`
    failures.push({ text, problem: invalid(fieldOf(subject), size, text) })
  }
  if (max !== undefined && size > max) {
    failures.push({ text: `${path} in body should have at most ${max} ${what}`, problem: tooMany(fieldOf(subject), size, max) })
  }
  return failures
}

/** The field of a problem: the path below the base, without the dot that the root leaves in front. */
export function fieldOf({ path, base }: Pick<Subject, 'path' | 'base'>): string {
  const name = path.startsWith('.') ? path.slice(1) : path
  if (base === '') return name === '' ? NO_FIELD : name
  return name === '' ? base : `${base}.${name}`
}

function jsonType(value: Json): string {
  if (value === null) return 'null'
  if (Array.isArray(value)) return 'array'
  if (typeof value === 'number') return Number.isInteger(value) ? 'integer' : 'number'
  return typeof value
}
