import { forbidden, invalid, notSupported, required } from '../field-problems.ts'
import type { FieldProblem, Json } from '../kind-schema.ts'
import { furtherOf, META_FIELDS, type SchemaNode } from '../schema-node.ts'
import { defaultProblems } from './default-problems.ts'
import { ruleProblems, ruleShapeProblems } from './rule-problems.ts'
import { structuralProblems } from './structural-problems.ts'

const TYPES = ['array', 'boolean', 'integer', 'number', 'object', 'string']
const UNSUPPORTED = ['id', 'additionalItems', 'patternProperties', 'definitions', 'dependencies', '$ref'] as const

/**
 * Why the real server would refuse a CRD with this schema: not structural, a default that does not fit, a rule that
 * does not compile. `field` is that of the schema. Empty: `structuralSchema` may compile it.
 */
export function schemaProblems(root: SchemaNode, field: string): readonly FieldProblem[] {
  const problems: FieldProblem[] = []
  if (root.nullable) problems.push(forbidden(`${field}.nullable`, 'nullable cannot be true at the root'))
  const structure = structuralProblems(root, field)
  const defaults = structure.length > 0 ? [] : defaultProblems(root, field)
  problems.push(...structure, ...defaults, ...nodeProblems(root, { field, isRoot: true }))
  return problems.length > 0 ? problems : [...ruleProblems(root, field)]
}

interface Place {
  readonly field: string
  readonly isRoot?: boolean
  readonly noDefaults?: string
}

/** Problems of a node by itself. */
function* nodeProblems(node: SchemaNode, place: Place): Generator<FieldProblem> {
  const { field, noDefaults } = place
  const odd = node as Readonly<Record<string, Json | undefined>>
  if (node.type === 'null') yield forbidden(`${field}.type`, 'type cannot be set to null, use nullable as an alternative')
  if (node.type && !TYPES.includes(node.type)) yield notSupported(`${field}.type`, node.type, TYPES)
  if (node.default !== undefined && noDefaults !== undefined) yield forbidden(`${field}.default`, noDefaults)
  for (const name of UNSUPPORTED) if (odd[name] !== undefined) yield forbidden(`${field}.${name}`, `${name} is not supported`)
  if (Array.isArray(odd['items'])) yield forbidden(`${field}.items`, 'items must be a schema object and not an array')
  if (node.uniqueItems) {
    yield forbidden(`${field}.uniqueItems`, 'uniqueItems cannot be set to true since the runtime complexity becomes quadratic')
  }
  if (node.additionalProperties !== undefined && node.additionalProperties !== false && Object.keys(node.properties ?? {}).length > 0) {
    yield forbidden(`${field}.additionalProperties`, 'additionalProperties and properties are mutual exclusive')
  }
  yield* extensionProblems(node, field)
  yield* listMapProblems(node, field)
  yield* ruleShapeProblems(node, field)
  const meta = place.isRoot || node['x-kubernetes-embedded-resource']
  for (const [name, inner] of Object.entries(node.properties ?? {})) {
    const inMeta = meta && META_FIELDS.has(name)
    yield* nodeProblems(inner, {
      field: `${field}.properties[${name}]`,
      ...(inMeta && { noDefaults: 'must not be set in metadata' }),
      ...(noDefaults !== undefined && { noDefaults }),
    })
  }
  if (node.items && !Array.isArray(node.items)) {
    yield* nodeProblems(node.items, { field: `${field}.items`, ...(noDefaults !== undefined && { noDefaults }) })
  }
  const further = furtherOf(node)
  if (further) {
    yield* nodeProblems(further, { field: `${field}.additionalProperties`, ...(noDefaults !== undefined && { noDefaults }) })
  }
}

function* extensionProblems(node: SchemaNode, field: string): Generator<FieldProblem> {
  if (node['x-kubernetes-preserve-unknown-fields'] === false) {
    yield invalid(`${field}.x-kubernetes-preserve-unknown-fields`, false, 'must be true or undefined')
  }
  const mapType = node['x-kubernetes-map-type']
  if (mapType !== undefined) {
    yield* typeFor(node, field, { type: 'object', extension: 'x-kubernetes-map-type' })
    if (mapType !== 'atomic' && mapType !== 'granular')
      yield notSupported(`${field}.x-kubernetes-map-type`, mapType, ['atomic', 'granular'])
  }
  const listType = node['x-kubernetes-list-type']
  if (listType !== undefined) {
    yield* typeFor(node, field, { type: 'array', extension: 'x-kubernetes-list-type' })
    if (!['atomic', 'set', 'map'].includes(listType)) {
      yield notSupported(`${field}.x-kubernetes-list-type`, listType, ['atomic', 'set', 'map'])
    }
    const itemMap = node.items?.['x-kubernetes-map-type']
    if (listType === 'set' && node.items?.type === 'object' && itemMap !== 'atomic') {
      yield invalid(
        `${field}.items.x-kubernetes-map-type`,
        node.items['x-kubernetes-list-type'] ?? null,
        'must be atomic as item of a list with x-kubernetes-list-type=set',
      )
    }
  }
}

function* typeFor(node: SchemaNode, field: string, { type, extension }: { type: string; extension: string }): Generator<FieldProblem> {
  const text = `must be ${type} if ${extension} is specified`
  if (!node.type) yield required(`${field}.type`, text)
  else if (node.type !== type) yield invalid(`${field}.type`, node.type, text)
}

function* listMapProblems(node: SchemaNode, field: string): Generator<FieldProblem> {
  const keys = node['x-kubernetes-list-map-keys'] ?? []
  const listType = node['x-kubernetes-list-type']
  if (keys.length > 0 && listType !== 'map') {
    const text = 'must be map if x-kubernetes-list-map-keys is non-empty'
    yield listType === undefined
      ? required(`${field}.x-kubernetes-list-type`, text)
      : invalid(`${field}.x-kubernetes-list-type`, listType, text)
  }
  if (listType !== 'map') return
  if (keys.length === 0) yield required(`${field}.x-kubernetes-list-map-keys`, 'must not be empty if x-kubernetes-list-type is map')
  if (!node.items) {
    yield required(`${field}.items`, 'must have a schema if x-kubernetes-list-type is map')
    return
  }
  if (node.items.type !== 'object') {
    yield invalid(`${field}.items.type`, node.items.type ?? '', "must be object if parent array's x-kubernetes-list-type is map")
  }
  if (node.items.nullable) yield forbidden(`${field}.items.nullable`, 'cannot be nullable when x-kubernetes-list-type is map')
  for (const key of keys) {
    const property = node.items.properties?.[key]
    const at = `${field}.items.properties[${key}]`
    if (!property) {
      yield invalid(`${field}.x-kubernetes-list-map-keys`, [...keys], 'entries must all be names of item properties')
      continue
    }
    if (property.type === 'array' || property.type === 'object') {
      yield invalid(`${at}.type`, node.items.type ?? '', "must be a scalar type if parent array's x-kubernetes-list-type is map")
    }
    if (property.default === undefined && !node.items.required?.includes(key)) {
      yield required(`${at}.default`, 'this property is in x-kubernetes-list-map-keys, so it must have a default or be a required property')
    }
    if (property.nullable) {
      yield forbidden(`${at}.nullable`, 'this property is in x-kubernetes-list-map-keys, so it cannot be nullable')
    }
  }
  if (new Set(keys).size !== keys.length) {
    yield invalid(`${field}.x-kubernetes-list-map-keys`, [...keys], 'must not contain duplicate entries')
  }
}
