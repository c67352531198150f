import type { Json, JsonObject, ListMerge, MapMerge, MergeSchema, ScalarMerge } from '../kind-schema.ts'
import { goSyntax, goText, goType, sortedMembers } from '../values/go-text.ts'
import { pathText } from './field-set.ts'

/** The object does not fit the schema it is to be merged by. */
export class TypedValueError extends Error {
  readonly what: string

  constructor(path: readonly string[], what: string) {
    super(`${pathText(path)}: ${what}`)
    this.name = 'TypedValueError'
    this.what = what
  }
}

/** How a value is to be treated: as one leaf, as members or as items with an identity. */
export type Shape =
  | { readonly kind: 'leaf' }
  | { readonly kind: 'map'; member(name: string): MergeSchema; isField(name: string): boolean }
  | { readonly kind: 'list'; readonly schema: ListMerge }

const LEAF: Shape = { kind: 'leaf' }
const UNTYPED: MergeSchema = { type: 'untyped' }

export function isMapValue(value: Json | undefined): value is JsonObject {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}

/** `null` and absent values take the shape of their counterpart, which the caller passes instead. */
export function shapeOf(value: Json | undefined, schema: MergeSchema): Shape {
  if (isMapValue(value)) {
    if (schema.type === 'untyped') return { kind: 'map', member: () => UNTYPED, isField: () => false }
    if (schema.type !== 'map' || schema.atomic) return LEAF
    return { kind: 'map', member: (name) => schema.member(name) ?? UNTYPED, isField: (name) => schema.isField(name) }
  }
  if (Array.isArray(value) && schema.type === 'list' && schema.list !== 'atomic') return { kind: 'list', schema }
  return LEAF
}

export function fieldStep(name: string): string {
  return `f:${name}`
}

/** Identity of an item: its value in a set, its keys in a list map. */
export function itemStep(item: Json, schema: ListMerge, path: readonly string[]): string {
  if (schema.list === 'set') return `v:${sortedJson(item)}`
  if (!isMapValue(item)) throw new TypedValueError(path, 'associative list with keys may not have non-map elements')
  const keys = [...schema.keys].sort().map((key): [string, Json] => {
    const value = Object.hasOwn(item, key) ? item[key] : schema.keyDefaults[key]
    if (value === undefined) {
      throw new TypedValueError(
        path,
        `associative list with keys has an element that omits key field ${JSON.stringify(key)} (and doesn't have default value)`,
      )
    }
    return [key, value]
  })
  return `k:${sortedJson(Object.fromEntries(keys))}`
}

function sortedJson(value: Json): string {
  if (Array.isArray(value)) return `[${value.map(sortedJson).join(',')}]`
  if (!isMapValue(value)) return JSON.stringify(value)
  return `{${sortedMembers(value)
    .map(([name, member]) => `${JSON.stringify(name)}:${sortedJson(member)}`)
    .join(',')}}`
}

/** Items by their identity. */
export function itemsByStep(list: readonly Json[], schema: ListMerge, path: readonly string[]): Map<string, readonly Json[]> {
  const items = new Map<string, Json[]>()
  for (const item of list) {
    const step = itemStep(item, schema, path)
    const same = items.get(step)
    if (same) same.push(item)
    else items.set(step, [item])
  }
  return items
}

/** More are of no use, and each costs time: an object of 100,000 wrong items is refused like one with a few. */
const MAX_PROBLEMS = 100

/**
 * Problems of an applied object, in the words of the real server: members that the schema does not know, values of another type, items
 * that cannot be distinguished. The first of them, if there are very many.
 */
export function typedProblems(value: Json, schema: MergeSchema): TypedValueError[] {
  const problems: TypedValueError[] = []
  findProblems({ value, schema, path: [] }, problems)
  return problems
}

interface Place<S extends MergeSchema = MergeSchema, V extends Json = Json> {
  readonly value: V
  readonly schema: S
  readonly path: readonly string[]
}

function findProblems({ value, schema, path }: Place, problems: TypedValueError[]): void {
  if (value === null) return
  if (schema.type === 'map' && isMapValue(value)) findInMembers({ value, schema, path }, problems)
  else if (schema.type === 'list' && Array.isArray(value)) findInItems({ value, schema, path }, problems)
  else {
    const what = valueProblem(value, schema)
    if (what !== undefined) problems.push(new TypedValueError(path, what))
  }
}

function valueProblem(value: Json, schema: MergeSchema): string | undefined {
  if (schema.type === 'untyped') return undefined
  return schema.type === 'scalar' ? scalarProblem(value, schema.scalar) : `expected ${schema.type}, got &{${goText(value)}}`
}

function findInMembers({ value, schema, path }: Place<MapMerge, JsonObject>, problems: TypedValueError[]): void {
  for (const [name, member] of Object.entries(value)) {
    if (problems.length >= MAX_PROBLEMS) return
    const inner = schema.member(name)
    const place = [...path, fieldStep(name)]
    if (!inner) {
      problems.push(new TypedValueError(place, 'field not declared in schema'))
      return // it looks no further
    }
    findProblems({ value: member, schema: inner, path: place }, problems)
  }
}

function findInItems({ value, schema, path }: Place<ListMerge, Json[]>, problems: TypedValueError[]): void {
  const seen = new Set<string>()
  for (const [index, item] of value.entries()) {
    if (problems.length >= MAX_PROBLEMS) return
    const step =
      schema.list === 'atomic'
        ? `i:${index}`
        : itemStepOr(item, schema, (why) => problems.push(new TypedValueError(path, `element ${index}: ${why}`)))
    if (step === undefined) return
    if (schema.list !== 'atomic' && seen.has(step))
      problems.push(new TypedValueError(path, `duplicate entries for key ${pathText([step])}`))
    seen.add(step)
    findProblems({ value: item, schema: schema.item(), path: [...path, step] }, problems)
  }
}

function itemStepOr(item: Json, schema: ListMerge, refuse: (why: string) => void): string | undefined {
  try {
    return itemStep(item, schema, [])
  } catch (error) {
    if (!(error instanceof TypedValueError)) throw error
    refuse(error.what)
    return undefined
  }
}

function scalarProblem(value: Json, expected: ScalarMerge['scalar']): string | undefined {
  switch (expected) {
    case 'whole':
      return undefined
    case 'string':
      return typeof value === 'string' ? undefined : `expected string, got &value.valueUnstructured{Value:${goSyntax(value)}}`
    case 'numeric':
      return typeof value === 'number' ? undefined : `expected numeric (int or float), got ${goType(value)}`
    case 'boolean':
      return typeof value === 'boolean' ? undefined : `expected boolean, got &{${goText(value)}}`
    case undefined:
      return typeof value === 'object' ? `expected any scalar, got &{${goText(value)}}` : undefined
  }
}
