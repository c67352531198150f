import { forbidden, invalid, notSupported, required } from '@thv/kube-schema/field-problems'
import type { FieldProblem, Json, JsonObject } from '@thv/kube-schema/kind-schema'
import {
  labelValueProblems as labelValueTexts,
  portNameProblems as portNameTexts,
  portNumberProblems as portNumberTexts,
  qualifiedNameProblems as qualifiedNameTexts,
} from '@thv/kube-schema/values/name-checks'
import { type NameRule, nameProblems } from '@thv/kube-schema/values/object-name'
import { at, isObject, textAt } from './served-kind.ts'

// Checks that many kinds share, in the words of the real server.

/** Nothing when the value is one of the supported ones; `Required` when there is none. */
export function choiceProblems(field: string, value: Json | undefined, supported: readonly string[]): FieldProblem[] {
  if (value === undefined || value === '') return [required(field)]
  return typeof value === 'string' && supported.includes(value) ? [] : [notSupported(field, value, supported)]
}

export function nameValueProblems(field: string, value: string, rule: NameRule): FieldProblem[] {
  return nameProblems(rule, value).map((why) => invalid(field, value, why))
}

/** Of a map of labels; all problems name the map as a whole. */
export function labelMapProblems(field: string, labels: Json | undefined): FieldProblem[] {
  if (!isObject(labels)) return []
  return Object.entries(labels).flatMap(([key, value]) => [
    ...qualifiedNameProblems(field, key),
    ...(typeof value === 'string' ? labelValueProblems(field, value) : []),
  ])
}

export function labelValueProblems(field: string, value: string): FieldProblem[] {
  return labelValueTexts(value).map((why) => invalid(field, value, why))
}

/** A name with an optional prefix, as keys of labels and annotations are. `checked` stands in for it where case does not matter. */
export function qualifiedNameProblems(field: string, name: string, checked = name): FieldProblem[] {
  return qualifiedNameTexts(checked).map((why) => invalid(field, name, why))
}

/** Of a `LabelSelector`. */
export function labelSelectorProblems(field: string, selector: Json | undefined): FieldProblem[] {
  const expressions = at(selector, 'matchExpressions')
  return [
    ...labelMapProblems(`${field}.matchLabels`, at(selector, 'matchLabels')),
    ...listOf(expressions).flatMap((expression, index) => requirementProblems(`${field}.matchExpressions[${index}]`, expression)),
  ]
}

export interface RequirementOptions {
  /** Operators with one number, which only nodes are selected by. */
  readonly ordered?: boolean
  readonly anyValue?: boolean
}

/** Of one expression of a selector. */
export function requirementProblems(field: string, requirement: JsonObject, options: RequirementOptions = {}): FieldProblem[] {
  const operator = textAt(requirement, 'operator')
  const values = textsOf(requirement['values'])
  const problems: FieldProblem[] = []
  if (operator === 'In' || operator === 'NotIn') {
    if (values.length === 0) problems.push(required(`${field}.values`, "must be specified when `operator` is 'In' or 'NotIn'"))
  } else if (operator === 'Exists' || operator === 'DoesNotExist') {
    const why = "may not be specified when `operator` is 'Exists' or 'DoesNotExist'"
    if (values.length > 0) problems.push(forbidden(`${field}.values`, why))
  } else if (options.ordered === true && (operator === 'Gt' || operator === 'Lt')) {
    if (values.length !== 1) problems.push(required(`${field}.values`, "must be specified single value when `operator` is 'Lt' or 'Gt'"))
  } else problems.push(invalid(`${field}.operator`, operator, 'not a valid selector operator'))
  problems.push(...qualifiedNameProblems(`${field}.key`, textAt(requirement, 'key')))
  if (options.anyValue === true) return problems
  return [...problems, ...values.flatMap((value, index) => labelValueProblems(`${field}.values[${index}]`, value))]
}

export function portNumberProblems(field: string, port: Json | undefined): FieldProblem[] {
  const number = typeof port === 'number' ? port : 0
  return portNumberTexts(number).map((why) => invalid(field, number, why))
}

/** An IANA service name, as ports of containers have them. */
export function portNameProblems(field: string, name: string): FieldProblem[] {
  return portNameTexts(name).map((why) => invalid(field, name, why))
}

/** A number or a name of a port. */
export function portProblems(field: string, port: Json | undefined): FieldProblem[] {
  return typeof port === 'string' ? portNameProblems(field, port) : portNumberProblems(field, port)
}

/** The objects of a list; empty when there is none. */
export function listOf(value: Json | undefined): JsonObject[] {
  return Array.isArray(value) ? (value as readonly Json[]).map((item) => (isObject(item) ? item : {})) : []
}

export function textsOf(value: Json | undefined): string[] {
  return Array.isArray(value) ? (value as readonly Json[]).map((item) => (typeof item === 'string' ? item : '')) : []
}
