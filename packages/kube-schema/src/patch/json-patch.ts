import { jsonEqual } from '@thv/kernel/json'
import type { Json, JsonObject } from '../kind-schema.ts'
import { PatchError } from './patch-error.ts'
import { isMapValue } from './typed-value.ts'

const MAX_OPERATIONS = 10_000
/** By copying, a short patch could make an object of any size. */
const MAX_COPIED = 3 << 20
/** The real server does not say what went wrong. */
const REJECTED = 'the server rejected our request due to an error in our request'

/** RFC 6902. Works on a copy: ten thousand operations on a large object must not copy it ten thousand times. */
export function applyJsonPatch(object: JsonObject, patch: Json): JsonObject {
  if (!Array.isArray(patch)) throw new PatchError(400, 'json: cannot unmarshal object into Go value of type jsonpatch.Patch')
  if (patch.length > MAX_OPERATIONS) {
    throw new PatchError(413, `The allowed maximum operations in a JSON patch is ${MAX_OPERATIONS}, got ${patch.length}`)
  }
  const document: Document = { root: structuredClone(object) as Json, copied: 0 }
  for (const operation of patch as readonly Json[]) carryOut(document, operation)
  if (!isMapValue(document.root)) throw rejected()
  return document.root
}

interface Document {
  root: Json
  copied: number
}

function carryOut(document: Document, operation: Json): void {
  if (!isMapValue(operation)) throw new PatchError(400, 'json: cannot unmarshal value into Go value of type jsonpatch.Operation')
  const path = pointer(operation['path'])
  const name = operation['op']
  const work = typeof name === 'string' && Object.hasOwn(OPERATIONS, name) ? OPERATIONS[name] : undefined
  if (!work) throw rejected()
  work(document, path, operation)
}

const OPERATIONS: Readonly<Record<string, (document: Document, path: readonly string[], operation: JsonObject) => void>> = {
  add: (document, path, operation) => add(document, path, structuredClone(valueIn(operation)) as Json),
  replace: (document, path, operation) => replace(document, path, structuredClone(valueIn(operation)) as Json),
  remove,
  move: (document, path, operation) => move(document, pointer(operation['from']), path),
  copy: (document, path, operation) => copy(document, pointer(operation['from']), path),
  test(document, path, operation) {
    if (!jsonEqual(findOrNull(document.root, path), valueIn(operation))) throw rejected()
  },
}

function add(document: Document, path: readonly string[], value: Json): void {
  const last = path.at(-1)
  if (last === undefined) {
    document.root = value
    return
  }
  const parent = find(document.root, path.slice(0, -1))
  if (Array.isArray(parent)) (parent as Json[]).splice(last === '-' ? parent.length : indexOf(last, parent.length), 0, value)
  else if (isMapValue(parent)) setMember(parent, last, value)
  else throw rejected()
}

/** As lenient as the real server: a member that is not there is added. */
function replace(document: Document, path: readonly string[], value: Json): void {
  const last = path.at(-1)
  const parent = last === undefined ? undefined : find(document.root, path.slice(0, -1))
  if (Array.isArray(parent) && last !== undefined) (parent as Json[])[indexOf(last, parent.length - 1)] = value
  else add(document, path, value)
}

function remove(document: Document, path: readonly string[]): void {
  const last = path.at(-1)
  if (last === undefined) throw rejected()
  const parent = find(document.root, path.slice(0, -1))
  if (Array.isArray(parent)) (parent as Json[]).splice(indexOf(last, parent.length - 1), 1)
  else if (isMapValue(parent) && Object.hasOwn(parent, last)) delete (parent as Record<string, Json>)[last]
  else throw rejected()
}

function move(document: Document, from: readonly string[], path: readonly string[]): void {
  if (path.length > from.length && from.every((step, index) => path[index] === step)) throw rejected()
  const value = find(document.root, from)
  remove(document, from)
  add(document, path, value)
}

function copy(document: Document, from: readonly string[], path: readonly string[]): void {
  const value = findOrNull(document.root, from)
  document.copied += JSON.stringify(value).length
  if (document.copied > MAX_COPIED) throw rejected()
  add(document, path, structuredClone(value) as Json)
}

/** Not by assignment: a member may be called `__proto__`. */
function setMember(parent: JsonObject, name: string, value: Json): void {
  Object.defineProperty(parent, name, { value, enumerable: true, configurable: true, writable: true })
}

function valueIn(operation: JsonObject): Json {
  return Object.hasOwn(operation, 'value') ? (operation['value'] as Json) : null
}

function pointer(text: Json | undefined): string[] {
  if (typeof text !== 'string' || (text !== '' && !text.startsWith('/'))) throw rejected()
  return text
    .split('/')
    .slice(1)
    .map((step) => step.replaceAll('~1', '/').replaceAll('~0', '~'))
}

function find(root: Json, path: readonly string[]): Json {
  return path.reduce((value, step) => memberOf(value, step), root)
}

/** For `test` and `copy` a member that is not there is null. */
function findOrNull(root: Json, path: readonly string[]): Json {
  const parent = find(root, path.slice(0, -1))
  const last = path.at(-1)
  return last !== undefined && isMapValue(parent) && !Object.hasOwn(parent, last) ? null : find(root, path)
}

function memberOf(value: Json, step: string): Json {
  if (Array.isArray(value)) return value[indexOf(step, value.length - 1)] as Json
  if (isMapValue(value) && Object.hasOwn(value, step)) return value[step] as Json
  throw rejected()
}

function indexOf(step: string, max: number): number {
  if (!/^-?\d+$/.test(step)) throw rejected()
  const index = Number(step) < 0 ? Number(step) + max + 1 : Number(step)
  if (index < 0 || index > max) throw rejected()
  return index
}

function rejected(): PatchError {
  return new PatchError(422, REJECTED)
}
