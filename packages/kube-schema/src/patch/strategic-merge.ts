import { jsonEqual } from '@thv/kernel/json'
import type { Json, JsonObject, ListMerge, MergeSchema } from '../kind-schema.ts'
import { goText } from '../values/go-text.ts'
import { PatchError } from './patch-error.ts'
import { isMapValue } from './typed-value.ts'

const DIRECTIVE = '$patch'
const RETAIN_KEYS = '$retainKeys'
const DELETE_PREFIX = '$deleteFromPrimitiveList/'
const ORDER_PREFIX = '$setElementOrder/'

/** Strategic merge patch: only for kinds whose schema says how their lists merge. */
export function applyStrategicMergePatch(object: JsonObject, patch: Json, schema: MergeSchema): JsonObject {
  if (!isMapValue(patch)) throw new PatchError(400, 'Invalid JSON Patch')
  return mergeMaps(object, patch, schema)
}

function mergeMaps(target: JsonObject, patch: JsonObject, schema: MergeSchema): JsonObject {
  const directive = patch[DIRECTIVE]
  if (directive === 'replace') return withoutDirectives(patch) as JsonObject
  if (directive === 'delete') return {}
  if (directive !== undefined && directive !== 'merge') {
    throw new PatchError(500, `unknown patch type: ${String(directive)} in map: ${goText(patch)}`)
  }
  const result = new Map(Object.entries(retained(target, patch)))
  for (const [name, value] of Object.entries(patch)) {
    if (name === DIRECTIVE || name === RETAIN_KEYS) continue
    if (name.startsWith(DELETE_PREFIX)) deleteValues(result, name.slice(DELETE_PREFIX.length), value)
    else if (name === '$setElementOrder') throw new PatchError(400, 'invalid patch format of setElementOrder list')
    else if (name.startsWith(ORDER_PREFIX)) {
      // the order of a list that the patch holds too is applied with it
      if (!Object.hasOwn(patch, name.slice(ORDER_PREFIX.length))) reorder(result, name.slice(ORDER_PREFIX.length), { order: value, schema })
    } else if (value === null) result.delete(name)
    else {
      const inner = schema.type === 'map' ? schema.member(name) : undefined
      const order = patch[`${ORDER_PREFIX}${name}`]
      result.set(name, mergeMember({ current: result.get(name), value, order }, inner))
    }
  }
  return Object.fromEntries(result)
}

interface Member {
  readonly current: Json | undefined
  readonly value: Json
  readonly order: Json | undefined
}

function mergeMember({ current, value, order }: Member, schema: MergeSchema | undefined): Json {
  const known = schema ?? { type: 'untyped' }
  if (isMapValue(value)) return mergeMaps(isMapValue(current) ? current : {}, value, known)
  if (!Array.isArray(value) || known.type !== 'list' || !known.strategy.merge) return withoutDirectives(value)
  const list = Array.isArray(current) ? (current as readonly Json[]) : []
  const idOf = identityOf(known)
  if (order !== undefined) checkOrder(value as readonly Json[], order, idOf)
  const [key] = known.strategy.mergeKeys ?? []
  return key === undefined
    ? inOrder(mergePrimitives(list, value as readonly Json[]), { order: order ?? value, before: list, idOf: (item) => item })
    : mergeItems({ list, patch: value as readonly Json[], order }, { schema: known, key, idOf })
}

/** The items of the patch must stand in the order that it asks for, all of them. */
function checkOrder(patch: readonly Json[], order: Json, idOf: IdentityOf): void {
  if (!Array.isArray(order)) throw new PatchError(400, 'invalid patch format of setElementOrder list')
  const kept = patch.filter((item) => !(isMapValue(item) && item[DIRECTIVE] === 'delete'))
  if (order.length === 0 || patch.length === 0) return
  let found = 0
  for (const item of order as readonly Json[]) {
    const next = kept[found]
    if (next !== undefined && jsonEqual(idOf(next), idOf(item))) found += 1
  }
  if (found < kept.length)
    throw new PatchError(500, `The order in patch list:\n${goText(patch)}\n doesn't match $setElementOrder list:\n${goText(order)}\n`)
}

function retained(target: JsonObject, patch: JsonObject): JsonObject {
  const keys = patch[RETAIN_KEYS]
  if (keys === undefined) return target
  if (!Array.isArray(keys)) throw new PatchError(400, `invalid retainKeys directive: expected list`)
  const missing = Object.keys(patch).find((name) => !name.startsWith('$') && patch[name] !== null && !keys.includes(name))
  if (missing !== undefined) throw new PatchError(400, `the retainKeys list doesn't contain the field ${missing} of the patch`)
  return Object.fromEntries(Object.entries(target).filter(([name]) => keys.includes(name)))
}

function mergePrimitives(list: readonly Json[], patch: readonly Json[]): Json[] {
  return [...list, ...patch.filter((item) => !list.some((known) => jsonEqual(known, item)))].filter(
    (item, index, all) => all.findIndex((other) => jsonEqual(other, item)) === index,
  )
}

function mergeItems(
  { list, patch, order }: { list: readonly Json[]; patch: readonly Json[]; order: Json | undefined },
  { schema, key, idOf }: { schema: ListMerge; key: string; idOf: IdentityOf },
): Json[] {
  if (patch.some((item) => isMapValue(item) && item[DIRECTIVE] === 'replace')) {
    return patch.filter((item) => !isMapValue(item) || item[DIRECTIVE] === undefined)
  }
  let result = [...list]
  for (const item of patch) {
    if (!isMapValue(item)) throw new PatchError(400, `expected a map in the list patch, got ${typeof item}`)
    const id = idOf(item)
    if (id === undefined && list.length === 0) {
      // Nothing to find it in.
      result.push(mergeMaps({}, item, schema.item()))
      continue
    }
    if (id === undefined) throw new PatchError(500, `map: ${goText(item)} does not contain declared merge key: ${key}`)
    const at = result.findIndex((known) => isMapValue(known) && jsonEqual(idOf(known), id))
    if (item[DIRECTIVE] === 'delete') result = result.filter((known) => !(isMapValue(known) && jsonEqual(idOf(known), id)))
    else if (at < 0) result.push(mergeMaps({}, item, schema.item()))
    else result[at] = mergeMaps(result[at] as JsonObject, item, schema.item())
  }
  return inOrder(result, { order: order ?? patch, before: list, idOf })
}

interface Ordering {
  /** The items that the client wants in this order: as its patch has them, if it does not say. */
  readonly order: Json
  /** The list before the patch. */
  readonly before: readonly Json[]
  readonly idOf: IdentityOf
}

type IdentityOf = (item: Json) => Json | undefined

/** An item is known by its merge keys; undefined without the first of them. Other items are known by their value. */
function identityOf({ strategy: { mergeKeys = [] }, keyDefaults }: ListMerge): IdentityOf {
  const [first, ...more] = mergeKeys
  if (first === undefined) return (item) => item
  if (more.length === 0) return (item) => (isMapValue(item) ? item[first] : item)
  return (item) => {
    if (!isMapValue(item)) return item
    return item[first] === undefined ? undefined : mergeKeys.map((key) => item[key] ?? keyDefaults[key] ?? null)
  }
}

/** Items that the order names stand as it says; the others keep their place relative to those before them. New ones come first. */
function inOrder(items: Json[], { order, before, idOf }: Ordering): Json[] {
  if (!Array.isArray(order)) return items
  const places = (order as readonly Json[]).map(idOf)
  const placeOf = (item: Json) => places.findIndex((id) => jsonEqual(id, idOf(item)))
  const named = items.filter((item) => placeOf(item) >= 0).sort((a, b) => placeOf(a) - placeOf(b))
  const serverOnly = items.filter((item) => placeOf(item) < 0)
  const had = before.map(idOf)
  return interleave(named, serverOnly, (item) => had.findIndex((id) => jsonEqual(id, idOf(item))))
}

function interleave(named: Json[], others: Json[], placeBefore: (item: Json) => number): Json[] {
  const result: Json[] = []
  let [n, o] = [0, 0]
  while (n < named.length || o < others.length) {
    const next = named[n]
    const other = others[o]
    if (other === undefined) {
      result.push(next as Json)
      n += 1
    } else if (next === undefined || placeBefore(other) < placeBefore(next)) {
      result.push(other)
      o += 1
    } else {
      result.push(next)
      n += 1
    }
  }
  return result
}

function deleteValues(result: Map<string, Json>, name: string, values: Json): void {
  const list = result.get(name)
  if (!Array.isArray(list) || !Array.isArray(values)) return
  const left = (list as readonly Json[]).filter((item) => !(values as readonly Json[]).some((value) => jsonEqual(value, item)))
  result.set(name, left)
}

function reorder(result: Map<string, Json>, name: string, { order, schema }: { order: Json; schema: MergeSchema }): void {
  const list = result.get(name)
  const inner = schema.type === 'map' ? schema.member(name) : undefined
  if (!Array.isArray(list) || inner?.type !== 'list') return
  result.set(
    name,
    inOrder([...(list as readonly Json[])], {
      order,
      before: list as readonly Json[],
      idOf: identityOf(inner),
    }),
  )
}

function withoutDirectives(value: Json): Json {
  if (Array.isArray(value)) return value.map((item: Json) => withoutDirectives(item))
  if (!isMapValue(value)) return value
  return Object.fromEntries(
    Object.entries(value)
      .filter(([name, member]) => !name.startsWith('$') && member !== null)
      .map(([name, member]) => [name, withoutDirectives(member)]),
  )
}
