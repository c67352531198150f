import { isRecord } from '@thv/resources/schema/normalize'
import { type Fields, fieldsOf } from '../../deployment/template/pod-schema.ts'
import { identityOf } from '../../deployment/template/pod-template-spec.ts'
import type { Value } from './values.ts'

const ORDER = '$setElementOrder/'

/**
 * Lays a patch over a value as the API server does for `kubectl patch --type=strategic`: lists with keys are merged item by item, other
 * lists are replaced, null deletes, and the directives `$patch`, `$retainKeys` and `$setElementOrder/…` do what they do there. One
 * thing is better: ports of one number and different protocols are different ports. Pure; the patch must have been checked before.
 */
export function strategicMerge(base: Value, patch: Value, type: string): Record<string, unknown> {
  const directive = patch['$patch']
  if (directive === 'replace') return withoutDirectives(patch, type)
  if (directive === 'delete') return {}

  const fields = fieldsOf(type)
  const result: Record<string, unknown> = retained(base, patch['$retainKeys'])
  for (const [name, value] of Object.entries(patch)) {
    if (name.startsWith('$')) continue
    if (value === null) delete result[name]
    else if (value !== undefined) result[name] = mergeField(result[name], value, { name, fields })
  }
  for (const [name, order] of Object.entries(patch)) {
    if (name.startsWith(ORDER)) reorder(result, base, { field: name.slice(ORDER.length), order, fields })
  }
  return result
}

interface FieldPlace {
  readonly name: string
  readonly fields: Fields | undefined
}

function mergeField(base: unknown, patch: unknown, { name, fields }: FieldPlace): unknown {
  const field = fields?.get(name)
  const type = field?.type ?? 'any'
  if (isRecord(patch)) return isRecord(base) ? strategicMerge(base, patch, type) : withoutDirectives(patch, type)
  if (!Array.isArray(patch)) return patch
  if (field === undefined || field.keys.length === 0) return patch.map((item) => plain(item, type))
  return mergeList(Array.isArray(base) ? base.filter(isRecord) : [], patch.filter(isRecord), { type, keys: field.keys })
}

interface ListType {
  readonly type: string
  readonly keys: readonly string[]
}

/** One item that says `$patch: replace` makes the rest of the patch the whole list. */
function mergeList(base: readonly Value[], patch: readonly Value[], { type, keys }: ListType): Value[] {
  const identity = (item: Value) => identityOf(item, mergeKeys(keys))
  const given = patch.filter((item) => item['$patch'] === undefined || item['$patch'] === 'merge')
  const deleted = new Set(patch.filter((item) => item['$patch'] === 'delete').map(identity))
  const kept = patch.some((item) => item['$patch'] === 'replace') ? [] : base.filter((item) => !deleted.has(identity(item)))

  const changes = new Map(given.map((item) => [identity(item), item]))
  const merged = new Map(
    kept.map((item) => {
      const change = changes.get(identity(item))
      return [identity(item), change === undefined ? item : strategicMerge(item, change, type)]
    }),
  )
  for (const [key, item] of changes) if (!merged.has(key)) merged.set(key, withoutDirectives(item, type))
  return inOrder(merged, [...changes.keys()], kept.map(identity))
}

/** Ports are told apart by number and protocol; whatever else has two keys is merged by the first, as on the server. */
function mergeKeys(keys: readonly string[]): readonly string[] {
  return keys.includes('protocol') ? keys : keys.slice(0, 1)
}

/**
 * What the patch speaks of comes in the order of the patch, the rest in that of the base; between the two the order of the base holds
 * where it knows both, else the patch comes first.
 */
function inOrder(items: ReadonlyMap<string, Value>, patchOrder: readonly string[], baseOrder: readonly string[]): Value[] {
  const listed = patchOrder.filter((key) => items.has(key))
  const rest = [...items.keys()].filter((key) => !listed.includes(key)).sort((a, b) => baseOrder.indexOf(a) - baseOrder.indexOf(b))
  const ordered: string[] = []
  while (listed.length > 0 || rest.length > 0) {
    const [next, other] = [listed[0], rest[0]]
    const restFirst = next === undefined || (other !== undefined && isBefore(other, next, baseOrder))
    ordered.push(...(restFirst ? rest : listed).splice(0, 1))
  }
  return ordered.map((key) => items.get(key) ?? {})
}

function isBefore(a: string, b: string, order: readonly string[]): boolean {
  return order.includes(a) && order.includes(b) && order.indexOf(a) < order.indexOf(b)
}

interface OrderPlace {
  readonly field: string
  readonly order: unknown
  readonly fields: Fields | undefined
}

function reorder(result: Record<string, unknown>, base: Value, { field, order, fields }: OrderPlace): void {
  const keys = mergeKeys(fields?.get(field)?.keys ?? [])
  const [items, baseItems] = [result[field], base[field]]
  if (!Array.isArray(items) || !Array.isArray(order) || keys.length === 0) return
  const identities = (list: readonly unknown[]) => list.filter(isRecord).map((item) => identityOf(item, keys))
  const byKey = new Map(items.filter(isRecord).map((item) => [identityOf(item, keys), item]))
  result[field] = inOrder(byKey, identities(order), Array.isArray(baseItems) ? identities(baseItems) : [])
}

function retained(base: Value, keys: unknown): Record<string, unknown> {
  if (!Array.isArray(keys)) return { ...base }
  return Object.fromEntries(Object.entries(base).filter(([name]) => keys.includes(name)))
}

/** A part of the patch that meets nothing: what it deletes was not there anyway. */
function withoutDirectives(patch: Value, type: string): Record<string, unknown> {
  const { $patch: _, ...rest } = patch
  return strategicMerge({}, rest, type)
}

function plain(item: unknown, type: string): unknown {
  return isRecord(item) ? withoutDirectives(item, type) : item
}
