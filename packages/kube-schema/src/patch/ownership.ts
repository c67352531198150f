import { jsonEqual } from '@thv/kernel/json'
import type { JsonObject, MergeSchema } from '../kind-schema.ts'
import { type ApplyConflict, conflictOf } from './apply-conflict.ts'
import { type Comparison, compare, excluding } from './compare.ts'
import { difference, EMPTY_SET, type FieldSet, intersection, isEmptySet, recursiveDifference, setOf, union } from './field-set.ts'
import { fieldSetOf, withFieldsOnTheWay } from './field-set-of.ts'
import { allowedByLastApplied } from './last-applied.ts'
import { type Manager, type Managers, managerKey, managersOf, withManagers, withoutManagers } from './managed-fields.ts'
import { merge } from './merge.ts'
import { PatchError } from './patch-error.ts'
import { removeItems } from './remove.ts'
import { isMapValue, typedProblems } from './typed-value.ts'

/** The writing manager and its rules. */
export interface Writer {
  readonly schema: MergeSchema
  readonly manager: string
  /** Group and version of the request. */
  readonly apiVersion: string
  readonly subresource?: string
  /** RFC 3339, whole seconds. */
  readonly now: string
  /** Fields that this endpoint cannot change, such as `status` where that is a subresource. */
  readonly resetFields?: FieldSet
  /** An object of this kind with nothing set: the fields that are always there. */
  readonly empty?: JsonObject
}

/** Fields that belong to the server, never to a manager. */
const NEVER_OWNED = setOf(
  ['f:apiVersion'],
  ['f:kind'],
  ['f:metadata'],
  ...['name', 'namespace', 'creationTimestamp', 'selfLink', 'uid', 'clusterName', 'generation', 'managedFields', 'resourceVersion'].map(
    (name) => ['f:metadata', `f:${name}`],
  ),
)
const MAX_UPDATERS = 10
const OLD_UPDATES = 'ancient-changes'
const BEFORE_APPLY = 'before-first-apply'

/**
 * For create, update and every patch but apply: `next` with managedFields that tell who set what. `live` is undefined
 * on create. A client may hand in managedFields itself; `[]` and `[{}]` reset them.
 */
export function withOwnership(live: JsonObject | undefined, next: JsonObject, writer: Writer): JsonObject {
  if (isReset(next)) return withoutManagers(next)
  const given = managersOf(next)
  const managers = given && given.size > 0 ? given : (managersOf(live) ?? new Map<string, Manager>())
  const bare = withoutManagers(next)
  // an object that was never tracked stays so until the first apply
  if (managers.size === 0 && live) return bare
  const before = live ? withoutManagers(live) : emptyOf(next, writer)
  return withManagers(bare, capped(updated(managers, compareFor(before, bare, writer), writer)))
}

export type ApplyResult = { readonly object: JsonObject; readonly changed: boolean } | { readonly conflict: ApplyConflict }

/** Server-side apply. `live` is undefined when the object is to be created. Throws PatchError if `applied` does not fit the schema. */
export function serverSideApply(
  live: JsonObject | undefined,
  applied: JsonObject,
  options: Writer & { readonly force: boolean },
): ApplyResult {
  checkApplied(applied, options.schema)
  const before = live ? withoutManagers(live) : emptyOf(applied, options)
  let managers: Managers = managersOf(live) ?? new Map()
  if (live && managers.size === 0) {
    const firstWriter = { ...options, manager: BEFORE_APPLY }
    managers = updated(managers, compareFor(emptyOf(live, options), before, firstWriter), firstWriter)
  }
  const result = applyTo({ before, managers, force: options.force }, applied, options)
  if ('object' in result || options.manager !== 'kubectl') return result
  const allowed = allowedByLastApplied(before, options.schema)
  const left = result.conflict.without(allowed)
  return left ? { conflict: left } : applyTo({ before, managers, force: true }, applied, options)
}

/** In the words of the real server, which answers 500. */
function checkApplied(applied: JsonObject, schema: MergeSchema): void {
  const problems = typedProblems(applied, schema)
  if (problems.length === 0) return
  const { name = '', namespace = '' } = (isMapValue(applied['metadata']) ? applied['metadata'] : {}) as Readonly<Record<string, unknown>>
  const version = String(applied['apiVersion'])
  const what = `${String(namespace)}/${String(name)}; ${version.includes('/') ? version : `/${version}`}, Kind=${String(applied['kind'])}`
  const texts = problems.map(({ message }) => message)
  const why = texts.length === 1 ? texts[0] : `errors:\n  ${texts.join('\n  ')}`
  throw new PatchError(500, `failed to create typed patch object (${what}): ${why}`)
}

interface Target {
  readonly before: JsonObject
  readonly managers: Managers
  readonly force: boolean
}

function applyTo({ before, managers, force }: Target, applied: JsonObject, writer: Writer): ApplyResult {
  const { schema } = writer
  const self = managerKey({ ...identity(writer), operation: 'Apply' })
  const last = managers.get(self)
  const claimed = recursiveDifference(fieldSetOf(applied, schema), writer.resetFields ?? EMPTY_SET)
  const claim: Manager = { ...identity(writer), operation: 'Apply', time: last?.time ?? writer.now, fields: claimed }
  const withClaim = new Map(managers).set(self, claim)
  const merged = merge(before, applied, schema)
  const next = last ? withoutDropped(merged, last.fields, { managers: withClaim, schema }) : merged
  const comparison = excluding(compare(before, next, schema), writer.resetFields ?? EMPTY_SET)
  const conflicts = conflictsOf(withClaim, comparison, self)
  if (!force && conflicts.size > 0) return { conflict: conflictOf(conflicts) }
  const changed = !jsonEqual(before, next)
  const left = takenFrom(withClaim, comparison, self)
  const owned = difference(left.get(self)?.fields ?? EMPTY_SET, NEVER_OWNED)
  const result = new Map(left)
  if (isEmptySet(owned)) result.delete(self)
  else result.set(self, { ...claim, fields: owned, time: changed ? writer.now : (last?.time ?? writer.now) })
  return { object: withManagers(next, result), changed }
}

/** Drops what the manager applied last time and not now, unless somebody else has it or it was never its own. */
function withoutDropped(merged: JsonObject, last: FieldSet, { managers, schema }: { managers: Managers; schema: MergeSchema }): JsonObject {
  const named = (set: FieldSet) => withFieldsOnTheWay(set, schema)
  const all = named(fieldSetOf(merged, schema))
  const dropped = removeItems(merged, named(last), schema)
  const owned = [...managers.values()].reduce((set, { fields }) => union(set, fields), EMPTY_SET)
  const kept = union(named(fieldSetOf(dropped, schema)), named(owned))
  const withOwned = removeItems(merged, difference(all, kept), schema)
  const still = named(fieldSetOf(withOwned, schema))
  return removeItems(merged, intersection(difference(all, still), named(last)), schema)
}

function conflictsOf(managers: Managers, { added, modified }: Comparison, self: string): Map<Manager, FieldSet> {
  const touched = union(modified, added)
  const conflicts = new Map<Manager, FieldSet>()
  for (const [key, manager] of managers) {
    const common = intersection(manager.fields, touched)
    if (key !== self && !isEmptySet(common)) conflicts.set(manager, common)
  }
  return conflicts
}

/** Everybody but `self` loses what was changed or removed. */
function takenFrom(managers: Managers, { added, modified, removed }: Comparison, self?: string): Managers {
  const touched = union(modified, added)
  const left = new Map<string, Manager>()
  for (const [key, manager] of managers) {
    const fields = key === self ? manager.fields : difference(difference(manager.fields, intersection(manager.fields, touched)), removed)
    if (!isEmptySet(fields)) left.set(key, { ...manager, fields })
  }
  return left
}

/** An update takes what it changed, and adds that to what the same manager had. */
function updated(managers: Managers, comparison: Comparison, writer: Writer): Managers {
  const left = new Map(takenFrom(managers, comparison))
  const taken = difference(union(comparison.modified, comparison.added), NEVER_OWNED)
  if (isEmptySet(taken)) return left
  const entry = { ...identity(writer), operation: 'Update' as const }
  const key = managerKey(entry)
  left.set(key, { ...entry, time: writer.now, fields: union(taken, left.get(key)?.fields ?? EMPTY_SET) })
  return left
}

/** Beyond ten updaters the oldest are thrown together. */
function capped(managers: Managers): Managers {
  const result = new Map(managers)
  const updaters = [...managers]
    .filter(([, { operation }]) => operation === 'Update')
    .sort(([, a], [, b]) => (a.time ?? '').localeCompare(b.time ?? ''))
  const firstOf = new Map<string, string>()
  let count = updaters.length
  for (const [key, manager] of updaters) {
    if (count <= MAX_UPDATERS) break
    const first = firstOf.get(manager.apiVersion)
    if (first === undefined) {
      firstOf.set(manager.apiVersion, key)
      continue
    }
    const bucket = { manager: OLD_UPDATES, operation: 'Update' as const, apiVersion: manager.apiVersion, subresource: '' }
    const bucketKey = managerKey(bucket)
    const before = result.get(bucketKey) ?? result.get(first)
    result.delete(first)
    result.delete(key)
    result.set(bucketKey, { ...bucket, time: manager.time, fields: union(manager.fields, before?.fields ?? EMPTY_SET) })
    count -= 1
  }
  return result
}

function compareFor(before: JsonObject, next: JsonObject, { schema, resetFields = EMPTY_SET }: Writer): Comparison {
  return excluding(compare(before, next, schema), resetFields)
}

function emptyOf(object: JsonObject, { empty }: Writer): JsonObject {
  return { apiVersion: object['apiVersion'] ?? '', kind: object['kind'] ?? '', ...empty }
}

function identity({ manager, apiVersion, subresource = '' }: Writer): Pick<Manager, 'manager' | 'apiVersion' | 'subresource'> {
  return { manager: manager === '' ? 'unknown' : manager, apiVersion, subresource }
}

function isReset(object: JsonObject): boolean {
  const entries = (object['metadata'] as JsonObject | undefined)?.['managedFields']
  return Array.isArray(entries) && (entries.length === 0 || (entries.length === 1 && jsonEqual(entries[0], {})))
}
