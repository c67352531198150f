import type { FieldProblem, Json, JsonObject, KindSchema, MergeSchema, PatchStrategy } from '../kind-schema.ts'
import { pruneObjectMeta } from '../meta/object-meta-fields.ts'
import { OBJECT_META_MERGE, scalarMerge } from '../meta/object-meta-merge.ts'
import { isMap, own } from '../schema-node.ts'
import generated from './builtin-schemas.generated.json' with { type: 'json' }

/** A node of the generated file; see `generate-builtin-schemas.ts`. */
export interface BuiltinNode {
  readonly $ref?: string
  readonly type?: string
  readonly format?: string
  readonly required?: readonly string[]
  readonly default?: Json
  readonly properties?: Readonly<Record<string, BuiltinNode>>
  readonly additionalProperties?: BuiltinNode
  readonly items?: BuiltinNode
  readonly 'x-kubernetes-list-type'?: string
  readonly 'x-kubernetes-list-map-keys'?: readonly string[]
  readonly 'x-kubernetes-map-type'?: string
  readonly 'x-kubernetes-patch-strategy'?: string
  readonly 'x-kubernetes-patch-merge-key'?: string
  readonly 'x-kubernetes-preserve-unknown-fields'?: boolean
}

export interface BuiltinSchemas {
  /** By `apps/v1 Deployment`. */
  readonly kinds: Readonly<Record<string, string>>
  readonly schemas: Readonly<Record<string, BuiltinNode>>
}

/** Facts about a kind that OpenAPI lacks, written by hand. */
export interface KindRules {
  applyDefaults?(object: JsonObject): JsonObject
  validate?(object: JsonObject, old?: JsonObject): readonly FieldProblem[]
}

const OBJECT_META = 'io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta'

/** An import, not a file that is read: it has to be in the bundle. */
export function builtinSchemas(): BuiltinSchemas {
  return generated as unknown as BuiltinSchemas
}

/** Undefined for a kind that we do not have. `rules` complete what the generated file cannot know. */
export function builtinSchema(apiVersion: string, kind: string, rules: KindRules = {}): KindSchema | undefined {
  const { kinds, schemas } = builtinSchemas()
  const id = own(kinds, `${apiVersion} ${kind}`)
  const root = id === undefined ? undefined : own(schemas, id)
  if (!root) return undefined
  return {
    prune(object) {
      const unknown: string[] = []
      const pruned = pruneNode(object, root, { path: '', unknown }) as JsonObject
      return { object: pruned, unknown: unknown.sort() }
    },
    applyDefaults: (object) => rules.applyDefaults?.(object) ?? object,
    validate: (object, old) => rules.validate?.(object, old) ?? [],
    merge: mergeOf(root),
  }
}

function resolved(node: BuiltinNode): BuiltinNode {
  const target = node.$ref === undefined ? undefined : own(builtinSchemas().schemas, node.$ref)
  return target ? { ...target, ...node } : node
}

interface Place {
  readonly path: string
  readonly unknown: string[]
}

function pruneNode(value: Json, node: BuiltinNode, { path, unknown }: Place): Json {
  const known = resolved(node)
  if (Array.isArray(value)) {
    const { items } = known
    return items ? value.map((item: Json, index) => pruneNode(item, items, { path: `${path}[${index}]`, unknown })) : value
  }
  if (!isMap(value)) return value
  if (node.$ref === OBJECT_META) return pruneObjectMeta(value, (field) => unknown.push(`${path}.${field}`))
  if (isOpen(known)) return value
  const kept: [string, Json][] = []
  for (const [name, member] of Object.entries(value)) {
    const inner = own(known.properties, name) ?? known.additionalProperties
    const below = path === '' ? name : `${path}.${name}`
    if (inner) kept.push([name, pruneNode(member, inner, { path: below, unknown })])
    else unknown.push(below)
  }
  return Object.fromEntries(kept)
}

/** Any JSON may stand here: nothing is said of members, as in RawExtension. */
function isOpen(node: BuiltinNode): boolean {
  return node['x-kubernetes-preserve-unknown-fields'] === true || (!node.properties && !node.additionalProperties)
}

function mergeOf(node: BuiltinNode): MergeSchema {
  if (node.$ref === OBJECT_META) return OBJECT_META_MERGE
  const known = resolved(node)
  const strategy = strategyOf(known)
  if (known.type === 'array') {
    const type = known['x-kubernetes-list-type']
    const keys = type === 'map' ? (known['x-kubernetes-list-map-keys'] ?? []) : []
    return {
      type: 'list',
      list: type === 'set' || type === 'map' ? type : 'atomic',
      keys,
      keyDefaults: keyDefaults(known.items, keys),
      item: () => (known.items ? mergeOf(known.items) : { type: 'untyped' }),
      strategy,
    }
  }
  if (known.type !== 'object') return known.type === undefined ? { type: 'untyped' } : scalarMerge(known)
  // A manager that sets a RawExtension owns it whole.
  if (isOpen(known)) return known['x-kubernetes-preserve-unknown-fields'] ? { type: 'untyped' } : { type: 'scalar', scalar: 'whole' }
  return {
    type: 'map',
    atomic: known['x-kubernetes-map-type'] === 'atomic',
    isField: (name) => own(known.properties, name) !== undefined,
    member(name) {
      const inner = own(known.properties, name) ?? known.additionalProperties
      return inner && mergeOf(inner)
    },
    strategy,
  }
}

/** `merge,retainKeys` names two at once. */
function strategyOf(node: BuiltinNode): PatchStrategy {
  const names = node['x-kubernetes-patch-strategy']?.split(',') ?? []
  const mergeKey = node['x-kubernetes-patch-merge-key']
  return {
    merge: names.includes('merge'),
    retainKeys: names.includes('retainKeys'),
    ...(mergeKey !== undefined && { mergeKeys: [mergeKey] }),
  }
}

function keyDefaults(items: BuiltinNode | undefined, keys: readonly string[]): JsonObject {
  const properties = items && resolved(items).properties
  return Object.fromEntries(
    keys.flatMap((key) => {
      const value = own(properties, key)?.default
      return value === undefined ? [] : [[key, value]]
    }),
  )
}
