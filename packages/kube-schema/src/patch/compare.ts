import { jsonEqual } from '@thv/kernel/json'
import type { Json, JsonObject, MergeSchema } from '../kind-schema.ts'
import { EMPTY_SET, type FieldSet, FieldSetBuilder, recursiveDifference } from './field-set.ts'
import { fieldStep, isMapValue, itemsByStep, shapeOf } from './typed-value.ts'

/** Differences of a new object, by path; no path is in two of the sets. */
export interface Comparison {
  readonly added: FieldSet
  readonly modified: FieldSet
  readonly removed: FieldSet
}

export function compare(old: JsonObject, next: JsonObject, schema: MergeSchema): Comparison {
  const walk = { added: new FieldSetBuilder(), modified: new FieldSetBuilder(), removed: new FieldSetBuilder() }
  visit({ old, next, path: [] }, schema, walk)
  return { added: walk.added.set, modified: walk.modified.set, removed: walk.removed.set }
}

/** Without the fields that the request could not have changed, and all below them. */
export function excluding({ added, modified, removed }: Comparison, fields: FieldSet): Comparison {
  if (fields === EMPTY_SET) return { added, modified, removed }
  return {
    added: recursiveDifference(added, fields),
    modified: recursiveDifference(modified, fields),
    removed: recursiveDifference(removed, fields),
  }
}

interface Pair {
  readonly old: Json | undefined
  readonly next: Json | undefined
  readonly path: readonly string[]
}

type Builders = Readonly<Record<keyof Comparison, FieldSetBuilder>>

function visit(pair: Pair, schema: MergeSchema, into: Builders): void {
  const { old, next, path } = pair
  const shape = shapeOf(isPresent(next) ? next : old, schema)
  const both = isPresent(old) && isPresent(next)
  const differs = both && shapeOf(old, schema).kind !== shape.kind
  if (differs || shape.kind === 'leaf' || (isEmptyValue(old) && isEmptyValue(next))) {
    leaf(pair, into)
    return
  }
  if (shape.kind === 'map') {
    const left = isMapValue(old) ? old : {}
    const right = isMapValue(next) ? next : {}
    for (const name of new Set([...Object.keys(left), ...Object.keys(right)])) {
      const inner = { old: memberAt(left, name), next: memberAt(right, name), path: [...path, fieldStep(name)] }
      visit(inner, shape.member(name), into)
    }
  } else {
    const left = itemsByStep(Array.isArray(old) ? old : [], shape.schema, path)
    const right = itemsByStep(Array.isArray(next) ? next : [], shape.schema, path)
    for (const step of new Set([...left.keys(), ...right.keys()])) {
      items({ left: left.get(step) ?? [], right: right.get(step) ?? [], path: [...path, step] }, shape.schema.item(), into)
    }
  }
  if (old === undefined) into.added.insert(path)
  else if (next === undefined) into.removed.insert(path)
}

/** Items that stand there more than once are compared as a whole. */
function items(
  { left, right, path }: { left: readonly Json[]; right: readonly Json[]; path: readonly string[] },
  schema: MergeSchema,
  into: Builders,
): void {
  if (left.length <= 1 && right.length <= 1) visit({ old: left[0], next: right[0], path }, schema, into)
  else if (left.length >= 2 && right.length >= 2) {
    if (!jsonEqual(left, right)) into.modified.insert(path)
  } else if (left.length >= 2) {
    if (right.length > 0) visit({ old: undefined, next: right[0], path }, schema, into)
    into.removed.insert(path)
  } else {
    if (left.length > 0) visit({ old: left[0], next: undefined, path }, schema, into)
    into.added.insert(path)
  }
}

function leaf({ old, next, path }: Pair, into: Builders): void {
  if (old === undefined) into.added.insert(path)
  else if (next === undefined) into.removed.insert(path)
  else if (!jsonEqual(old, next)) into.modified.insert(path)
}

function memberAt(object: JsonObject, name: string): Json | undefined {
  return Object.hasOwn(object, name) ? object[name] : undefined
}

function isPresent(value: Json | undefined): value is Json {
  return value !== undefined && value !== null
}

function isEmptyValue(value: Json | undefined): boolean {
  if (value === undefined || value === null) return true
  return Array.isArray(value) ? value.length === 0 : isMapValue(value) && Object.keys(value).length === 0
}
