import { jsonEqual } from '@thv/kernel/json'
import { forbidden, invalid, required } from '../field-problems.ts'
import type { FieldProblem } from '../kind-schema.ts'
import { furtherOf, type SchemaNode } from '../schema-node.ts'
import { GoRegexpError, goRegexp } from '../values/go-regexp.ts'

type Level = 'root' | 'item' | 'field'
const INT_OR_STRING = [{ type: 'integer' }, { type: 'string' }]

/** A schema is structural when its types can be read off without looking into alternatives. */
export function structuralProblems(root: SchemaNode, field: string): FieldProblem[] {
  const problems = [...invariants(root, field, 'root'), ...completeness(root, root, { field, at: field })]
  return problems.sort((a, b) => (a.detail < b.detail ? -1 : 1))
}

function* invariants(node: SchemaNode, field: string, level: Level): Generator<FieldProblem> {
  const isIntOrString = node['x-kubernetes-int-or-string'] === true
  const isEmbedded = node['x-kubernetes-embedded-resource'] === true
  const preserves = node['x-kubernetes-preserve-unknown-fields'] === true
  if (node.type === 'array' && !node.items) yield required(`${field}.items`, 'must be specified')
  if (node.items) yield* invariants(node.items, `${field}.items`, 'item')
  for (const [name, inner] of Object.entries(node.properties ?? {})) yield* invariants(inner, `${field}.properties[${name}]`, 'field')
  const further = furtherOf(node)
  if (node.additionalProperties !== undefined && node.additionalProperties !== false) {
    if (level === 'root') yield forbidden(`${field}.additionalProperties`, 'must not be used at the root')
    if (further) yield* invariants(further, `${field}.additionalProperties`, 'field')
    if (isEmbedded) yield forbidden(`${field}.additionalProperties`, 'must not be used if x-kubernetes-embedded-resource is set')
  }
  if (isIntOrString && preserves) {
    yield invalid(`${field}.x-kubernetes-preserve-unknown-fields`, true, 'must be false if x-kubernetes-int-or-string is true')
  }
  if (isIntOrString && isEmbedded) {
    yield invalid(`${field}.x-kubernetes-embedded-resource`, true, 'must be false if x-kubernetes-int-or-string is true')
  }
  yield* valueProblems(node, field, {
    anyOf: isIntOrString && jsonEqual(node.anyOf, INT_OR_STRING),
    allOf: isIntOrString && jsonEqual(node.allOf?.[0]?.anyOf, INT_OR_STRING),
  })
  yield* typeProblems(node, field, level)
  if (isEmbedded && !preserves && Object.keys(node.properties ?? {}).length === 0) {
    yield required(
      `${field}.properties`,
      'must not be empty if x-kubernetes-embedded-resource is true without x-kubernetes-preserve-unknown-fields',
    )
  }
}

function* typeProblems(node: SchemaNode, field: string, level: Level): Generator<FieldProblem> {
  const isEmbedded = node['x-kubernetes-embedded-resource'] === true
  const mayBeEmpty = node['x-kubernetes-int-or-string'] || node['x-kubernetes-preserve-unknown-fields']
  if (isEmbedded && node.type !== 'object') {
    const text = 'must be object if x-kubernetes-embedded-resource is true'
    yield node.type ? invalid(`${field}.type`, node.type, text) : required(`${field}.type`, text)
  } else if (!node.type && !mayBeEmpty) yield required(`${field}.type`, EMPTY_TYPE[level])
  if (level === 'root' && node.type && node.type !== 'object') yield invalid(`${field}.type`, node.type, 'must be object at the root')
  if (level !== 'root' && !isEmbedded) return
  for (const name of ['kind', 'apiVersion']) {
    const inner = node.properties?.[name]
    if (inner && inner.type !== 'string') yield invalid(`${field}.properties[${name}].type`, inner.type ?? '', 'must be string')
  }
  const metadata = node.properties?.['metadata']
  if (metadata && metadata.type !== 'object') yield invalid(`${field}.properties[metadata].type`, metadata.type ?? '', 'must be object')
  if (metadata && level === 'root' && saysMoreThanNames(metadata)) {
    yield forbidden(
      `${field}.properties[metadata]`,
      'must not specify anything other than name and generateName, but metadata is implicitly specified',
    )
  }
}

const EMPTY_TYPE: Readonly<Record<Level, string>> = {
  root: 'must not be empty at the root',
  item: 'must not be empty for specified array items',
  field: 'must not be empty for specified object fields',
}

function saysMoreThanNames(metadata: SchemaNode): boolean {
  const { type: _type, properties, default: _default, ...rest } = metadata
  return Object.keys(rest).length > 0 || Object.keys(properties ?? {}).some((name) => name !== 'name' && name !== 'generateName')
}

interface Excused {
  readonly anyOf: boolean
  readonly allOf: boolean
}

function* valueProblems(node: SchemaNode, field: string, excused: Excused): Generator<FieldProblem> {
  const none = { anyOf: false, allOf: false }
  if (!excused.anyOf) for (const [index, inner] of (node.anyOf ?? []).entries()) yield* nested(inner, `${field}.anyOf[${index}]`, none)
  for (const [index, inner] of (node.allOf ?? []).entries()) {
    yield* nested(inner, `${field}.allOf[${index}]`, { anyOf: excused.allOf && index === 0, allOf: false })
  }
  for (const [index, inner] of (node.oneOf ?? []).entries()) yield* nested(inner, `${field}.oneOf[${index}]`, none)
  if (node.not) yield* nested(node.not, `${field}.not`, none)
  if (node.pattern) {
    const text = patternProblem(node.pattern)
    if (text) yield invalid(`${field}.pattern`, node.pattern, `must be a valid regular expression, but isn't: ${text}`)
  }
}

function patternProblem(pattern: string): string | undefined {
  try {
    goRegexp(pattern)
    return undefined
  } catch (error) {
    if (error instanceof GoRegexpError) return error.message
    throw error
  }
}

const EMPTY = 'must be empty to be structural'
const UNDEFINED = 'must be undefined to be structural'
const FALSE = 'must be false to be structural'
const NOT_NESTED: Readonly<Record<string, string>> = {
  type: EMPTY,
  additionalProperties: UNDEFINED,
  default: UNDEFINED,
  title: EMPTY,
  description: EMPTY,
  nullable: FALSE,
  'x-kubernetes-preserve-unknown-fields': FALSE,
  'x-kubernetes-embedded-resource': FALSE,
  'x-kubernetes-int-or-string': FALSE,
  'x-kubernetes-list-map-keys': EMPTY,
  'x-kubernetes-list-type': UNDEFINED,
  'x-kubernetes-map-type': UNDEFINED,
  'x-kubernetes-validations': EMPTY,
}

function* nested(node: SchemaNode, field: string, excused: Excused): Generator<FieldProblem> {
  yield* valueProblems(node, field, excused)
  if (node.items) yield* nested(node.items, `${field}.items`, { anyOf: false, allOf: false })
  for (const [name, inner] of Object.entries(node.properties ?? {})) {
    yield* nested(inner, `${field}.properties[${name}]`, { anyOf: false, allOf: false })
  }
  for (const [name, text] of Object.entries(NOT_NESTED)) {
    const value = (node as Readonly<Record<string, unknown>>)[name]
    if (value !== undefined && value !== false && value !== '') yield forbidden(`${field}.${name}`, text)
  }
  if (node.properties?.['metadata']) yield forbidden(`${field}.properties[metadata]`, 'must not be specified in a nested context')
}

/** Whatever an alternative speaks of is specified outside of alternatives too. */
function* completeness(value: SchemaNode, node: SchemaNode, place: { field: string; at: string }): Generator<FieldProblem> {
  const { field, at } = place
  const alternatives: [SchemaNode | undefined, string][] = [
    [value.not, `${at}.not`],
    ...(['allOf', 'anyOf', 'oneOf'] as const).flatMap((name) =>
      (value[name] ?? []).map((inner, index): [SchemaNode, string] => [inner, `${at}.${name}[${index}]`]),
    ),
  ]
  for (const [inner, innerAt] of alternatives) if (inner) yield* nestedCompleteness(inner, node, { field, at: innerAt })
}

function* nestedCompleteness(value: SchemaNode, node: SchemaNode, place: { field: string; at: string }): Generator<FieldProblem> {
  const { field, at } = place
  yield* completeness(value, node, place)
  if (value.items) {
    if (!node.items) yield required(`${field}.items`, `because it is defined in ${at}.items`)
    else yield* nestedCompleteness(value.items, node.items, { field: `${field}.items`, at: `${at}.items` })
  }
  for (const [name, inner] of Object.entries(value.properties ?? {})) {
    const known = node.properties?.[name]
    const step = `.properties[${name}]`
    if (!known) yield required(`${field}${step}`, `because it is defined in ${at}${step}`)
    else yield* nestedCompleteness(inner, known, { field: `${field}${step}`, at: `${at}${step}` })
  }
}
