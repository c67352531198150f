import { Optional } from '@marcbachmann/cel-js'
import { childField, keyField } from '../field-path.ts'
import { duplicate, forbidden, invalid, NO_FIELD, required } from '../field-problems.ts'
import type { FieldProblem, Json, JsonObject } from '../kind-schema.ts'
import { isMap, own, propertyOf, type ValidationRule } from '../schema-node.ts'
import type { CompiledRule } from './compile-rule.ts'
import { type Correlation, correlatedItem, correlatedMember, isUnchanged, oldItem } from './correlation.ts'
import { ruleFieldPath } from './rule-field-path.ts'
import type { RuleTree } from './rule-tree.ts'

const MAX_MESSAGE_BYTES = 5 * 1024

/** Runs every rule of an object. The caller bounds the time. */
export function runRules(tree: RuleTree, object: JsonObject, old: JsonObject | undefined): FieldProblem[] {
  const correlation = old && { node: tree.type.node, value: object, old }
  const place: Place = { json: object, value: tree.type.value(object), field: '', isRoot: true }
  return [...problemsAt(tree, { ...place, ...withOld(tree, old) }, { correlation })]
}

/** A value inside the object, in JSON and as CEL sees it, and what it was before. */
interface Place {
  readonly json: Json
  readonly value: unknown
  readonly field: string
  readonly isRoot?: boolean
  readonly old?: { readonly json: Json; readonly value: unknown }
}

/** `nearest`: where the value itself has no counterpart in the old object, that of the closest parent that has one. */
interface Ratchet {
  readonly correlation?: Correlation | undefined
  readonly nearest?: Correlation | undefined
}

function* problemsAt(tree: RuleTree, place: Place, ratchet: Ratchet): Generator<FieldProblem> {
  if (place.json === null) return
  for (const compiled of tree.rules) yield* problemsOf(compiled, { tree, place, ratchet })
  if (Array.isArray(place.json) && tree.element) yield* itemProblems(tree, tree.element, { place, ratchet })
  else if (isMap(place.json)) yield* memberProblems(tree, place, ratchet)
}

function* itemProblems(tree: RuleTree, element: RuleTree, { place, ratchet }: { place: Place; ratchet: Ratchet }): Generator<FieldProblem> {
  const list = place.json as readonly Json[]
  const values = place.value as readonly unknown[]
  const before = place.old?.json
  for (const [index, json] of list.entries()) {
    const old = Array.isArray(before) ? oldItem(tree.type.node, json, before) : undefined
    const inner: Place = { json, value: values[index], field: `${place.field}[${index}]`, ...withOld(element, old) }
    yield* problemsAt(element, inner, inside(ratchet, correlatedItem(ratchet.correlation, index)))
  }
}

function* memberProblems(tree: RuleTree, place: Place, ratchet: Ratchet): Generator<FieldProblem> {
  const members = place.json as JsonObject
  const before = isMap(place.old?.json) ? place.old.json : undefined
  for (const [name, json] of Object.entries(members)) {
    const property = tree.properties.get(name)
    const inner = property ?? tree.element
    if (!inner) continue
    const field =
      propertyOf(tree.type.node, name) || tree.properties.has(name) ? childField(place.field, name) : keyField(place.field, name)
    const value = inner.type.value(json)
    const below: Place = { json, value, field, ...withOld(inner, before && own(before, name)) }
    yield* problemsAt(inner, below, inside(ratchet, correlatedMember(ratchet.correlation, name)))
  }
}

function inside({ correlation, nearest }: Ratchet, inner: Correlation | undefined): Ratchet {
  return correlation ? { correlation: inner, nearest: correlation } : { nearest }
}

function withOld(tree: RuleTree, json: Json | undefined): Pick<Place, 'old'> {
  return json === undefined || json === null ? {} : { old: { json, value: tree.type.value(json) } }
}

interface Case {
  readonly tree: RuleTree
  readonly place: Place
  readonly ratchet: Ratchet
}

function* problemsOf(compiled: CompiledRule, { tree, place, ratchet }: Case): Generator<FieldProblem> {
  const { rule, usesOldSelf } = compiled
  if (usesOldSelf && !place.old && !rule.optionalOldSelf) return
  const before = place.old?.value
  const oldSelf = rule.optionalOldSelf ? (place.old ? Optional.of(before) : Optional.none()) : before
  const variables = { self: place.value, oldSelf }
  const field = place.field === '' ? NO_FIELD : place.field
  const type = tree.type.node.type ?? ''
  try {
    if (compiled.holds(variables)) return
  } catch (error) {
    if (!(error instanceof Error)) throw error
    yield invalid(field, type, `${evaluationText(error)} evaluating rule: ${ruleText(rule)}`)
    return
  }
  // what did not change is not refused again
  if (!usesOldSelf && isUnchanged(ratchet.correlation ?? ratchet.nearest)) return
  const path = rule.fieldPath ? ruleFieldPath(place.field, rule.fieldPath, tree.type.node) : field
  yield ofReason(rule.reason, path, { type, message: messageOf(compiled, variables) })
}

function ofReason(reason: string | undefined, field: string, { type, message }: { type: string; message: string }): FieldProblem {
  if (reason === 'FieldValueForbidden') return forbidden(field, message)
  if (reason === 'FieldValueRequired') return required(field, message)
  return reason === 'FieldValueDuplicate' ? duplicate(field, type) : invalid(field, type, message)
}

function messageOf({ rule, message }: CompiledRule, variables: Parameters<CompiledRule['holds']>[0]): string {
  const fallback = rule.message ? rule.message.trim() : `failed rule: ${ruleText(rule)}`
  if (!message) return fallback
  try {
    const text = message(variables)
    const trimmed = typeof text === 'string' ? text.trim() : ''
    return trimmed === '' || trimmed.includes('\n') || Buffer.byteLength(trimmed) > MAX_MESSAGE_BYTES ? fallback : trimmed
  } catch (error) {
    if (error instanceof Error) return fallback // the real server falls back too
    throw error
  }
}

function ruleText({ rule, message }: ValidationRule): string {
  return message ? message.trim() : rule.trim()
}

/** In the words of cel-go, as far as they are known. */
function evaluationText(error: Error): string {
  const line = error.message.split('\n')[0] ?? ''
  const index = /index out of bounds, index (-?\d+)/.exec(line)
  if (index) return `index out of bounds: ${index[1]}`
  const key = /^No such key: (.*)$/.exec(line)
  return key ? `no such key: ${key[1]}` : line.charAt(0).toLowerCase() + line.slice(1)
}
