import { parseRuleFieldPath } from '../cel/rule-field-path.ts'
import { compileRules } from '../cel/rule-tree.ts'
import { internalError, invalid, invalidShown, notSupported, required } from '../field-problems.ts'
import type { FieldProblem, Json } from '../kind-schema.ts'
import { furtherOf, isMap, type SchemaNode } from '../schema-node.ts'
import { goJson } from '../values/go-text.ts'

const RULE_REASONS = ['FieldValueDuplicate', 'FieldValueForbidden', 'FieldValueInvalid', 'FieldValueRequired']

/** Problems of the rules of a schema that is otherwise valid. */
export function* ruleProblems(root: SchemaNode, field: string): Generator<FieldProblem> {
  yield* untypedRuleProblems(root, field)
  yield* lostOldSelfProblems(root, field)
  yield* compileProblems(root, field)
}

/** Problems of the rules of one node before they are compiled. */
export function* ruleShapeProblems(node: SchemaNode, field: string): Generator<FieldProblem> {
  for (const [index, rule] of (node['x-kubernetes-validations'] ?? []).entries()) {
    const at = `${field}.x-kubernetes-validations[${index}]`
    const message = rule.message ?? ''
    if ((rule.rule ?? '').trim() === '') yield required(`${at}.rule`, 'rule is not specified')
    else if (message !== '' && message.trim() === '') yield invalid(`${at}.message`, message, 'must be non-empty if specified')
    else if (message.trim().includes('\n')) yield invalid(`${at}.message`, message, 'must not contain line breaks')
    else if (rule.rule.trim().includes('\n') && message.trim() === '') {
      yield required(`${at}.message`, 'message must be specified if rule contains line breaks')
    }
    if (rule.messageExpression && rule.messageExpression.trim() === '') {
      yield required(`${at}.messageExpression`, 'messageExpression must be non-empty if specified')
    }
    if (rule.reason !== undefined && !RULE_REASONS.includes(rule.reason)) yield notSupported(`${at}.reason`, rule.reason, RULE_REASONS)
    if (!rule.fieldPath) continue
    if (rule.fieldPath.trim() === '') yield invalid(`${at}.fieldPath`, rule.fieldPath, 'must be non-empty if specified')
    if (rule.fieldPath.includes('\n')) yield invalid(`${at}.fieldPath`, rule.fieldPath, 'must not contain line breaks')
    if (!parseRuleFieldPath(rule.fieldPath, node)) yield invalid(`${at}.fieldPath`, rule.fieldPath, 'must be a valid path')
  }
}

function* compileProblems(root: SchemaNode, field: string): Generator<FieldProblem> {
  for (const { at, index, member, text, node } of compileRules(root).problems) {
    const rule = node['x-kubernetes-validations']?.[index]
    const place = `${field}${at}.x-kubernetes-validations[${index}].${member}`
    if (member === 'optionalOldSelf') yield invalid(place, rule?.optionalOldSelf ?? null, text)
    else yield invalidShown(place, goRule(rule), text)
  }
}

/** The real server shows a rule as the Go struct that holds it. */
function goRule(rule: NonNullable<SchemaNode['x-kubernetes-validations']>[number] | undefined): string {
  const members: [string, Json][] = [
    ['Rule', rule?.rule ?? ''],
    ['Message', rule?.message ?? ''],
    ['MessageExpression', rule?.messageExpression ?? ''],
    ['Reason', rule?.reason ?? null],
    ['FieldPath', rule?.fieldPath ?? ''],
    ['OptionalOldSelf', rule?.optionalOldSelf ?? null],
  ]
  return `{${members.map(([name, value]) => `${JSON.stringify(name)}:${goJson(value)}`).join(',')}}`
}

/** Rules need a value whose type is known. */
function* untypedRuleProblems(node: SchemaNode, field: string): Generator<FieldProblem> {
  if ((node['x-kubernetes-validations']?.length ?? 0) > 0 && !hasCelType(node)) {
    const text =
      'failed to construct type information for x-kubernetes-validations rules: unable to convert structural schema to CEL declarations'
    yield internalError(`${field}.x-kubernetes-validations`, `internal error: ${text}`)
  }
  for (const [name, inner] of Object.entries(node.properties ?? {})) yield* untypedRuleProblems(inner, `${field}.properties[${name}]`)
  const further = furtherOf(node)
  if (further) yield* untypedRuleProblems(further, `${field}.additionalProperties`)
  if (node.items) yield* untypedRuleProblems(node.items, `${field}.items`)
}

function hasCelType(node: SchemaNode): boolean {
  if (node['x-kubernetes-int-or-string']) return true
  if (node.type === 'array') return node.items !== undefined && hasCelType(node.items)
  const further = furtherOf(node)
  return node.type === 'object' && further ? hasCelType(further) : node.type !== undefined
}

/** Transition rules need a value that can be found again in the old object. */
function* lostOldSelfProblems(node: SchemaNode, field: string, lost?: string): Generator<FieldProblem> {
  for (const [index, { rule }] of (node['x-kubernetes-validations'] ?? []).entries()) {
    if (lost === undefined || !/\boldSelf\b/.test(rule)) continue
    const text = `oldSelf cannot be used on the uncorrelatable portion of the schema within ${lost}`
    yield invalid(`${field}.x-kubernetes-validations[${index}].rule`, rule, text)
  }
  for (const [name, inner] of Object.entries(node.properties ?? {})) yield* lostOldSelfProblems(inner, `${field}.properties[${name}]`, lost)
  const further = furtherOf(node)
  if (further) yield* lostOldSelfProblems(further, `${field}.additionalProperties`, lost)
  if (node.items && isMap(node.items as unknown as Json)) {
    const found = node['x-kubernetes-list-type'] === 'map' ? lost : (lost ?? field)
    yield* lostOldSelfProblems(node.items, `${field}.items`, found)
  }
}
