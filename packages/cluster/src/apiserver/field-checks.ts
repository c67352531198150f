import { isLabelKey, isLabelValue } from '@thv/kube/label-selector'
import { forbidden, invalid, notSupported, required } from '../schema/field-problems.ts'
import type { FieldProblem, Json, JsonObject } from './kind-schema.ts'
import { type NameRule, nameProblems } from './object-name.ts'
import { at, isObject, textAt } from './served-kind.ts'

// Checks that many kinds share, in the words of the real server.

const LABEL_VALUE =
  "a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character (e.g. 'MyValue',  or 'my_value',  or '12345', regex used for validation is '(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?')"
const QUALIFIED_NAME =
  "name part must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')"

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
  if (isLabelValue(value)) return []
  const long = value.length > 63 ? [invalid(field, value, 'must be no more than 63 characters')] : []
  return LABEL_VALUE_PATTERN.test(value) ? long : [...long, invalid(field, value, LABEL_VALUE)]
}

const LABEL_VALUE_PATTERN = /^(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?$/

/** A name with an optional prefix, as keys of labels and annotations are. `checked` stands in for it where case does not matter. */
export function qualifiedNameProblems(field: string, name: string, checked = name): FieldProblem[] {
  if (isLabelKey(checked)) return []
  const parts = name.split('/')
  if (parts.length > 2) return [invalid(field, name, MANY_PARTS)]
  const [prefix, local = ''] = parts.length === 2 ? parts : [undefined, name]
  const problems: string[] = []
  if (prefix === '') problems.push('prefix part must be non-empty')
  else if (prefix !== undefined) problems.push(...nameProblems('subdomain', prefix.toLowerCase()).map((why) => `prefix part ${why}`))
  if (local === '') problems.push('name part must be non-empty')
  else if (local.length > 63) problems.push('name part must be no more than 63 characters')
  if (!LOCAL_NAME.test(local)) problems.push(QUALIFIED_NAME)
  return problems.map((why) => invalid(field, name, why))
}

const LOCAL_NAME = /^([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]$/
const MANY_PARTS =
  "a qualified name must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]') with an optional DNS subdomain prefix and '/' (e.g. 'example.com/MyName')"

/** Of a `LabelSelector`. */
export function labelSelectorProblems(field: string, selector: Json | undefined): FieldProblem[] {
  const expressions = at(selector, 'matchExpressions')
  return [
    ...labelMapProblems(`${field}.matchLabels`, at(selector, 'matchLabels')),
    ...listOf(expressions).flatMap((expression, index) => expressionProblems(`${field}.matchExpressions[${index}]`, expression)),
  ]
}

function expressionProblems(field: string, expression: JsonObject): FieldProblem[] {
  const operator = textAt(expression, 'operator')
  const values = textsOf(expression['values'])
  const problems: FieldProblem[] = []
  if (operator === 'In' || operator === 'NotIn') {
    if (values.length === 0) problems.push(required(`${field}.values`, "must be specified when `operator` is 'In' or 'NotIn'"))
  } else if (operator === 'Exists' || operator === 'DoesNotExist') {
    const why = "may not be specified when `operator` is 'Exists' or 'DoesNotExist'"
    if (values.length > 0) problems.push(forbidden(`${field}.values`, why))
  } else problems.push(invalid(`${field}.operator`, operator, 'not a valid selector operator'))
  problems.push(...qualifiedNameProblems(`${field}.key`, textAt(expression, 'key')))
  for (const [index, value] of values.entries()) problems.push(...labelValueProblems(`${field}.values[${index}]`, value))
  return problems
}

export function portNumberProblems(field: string, port: Json | undefined): FieldProblem[] {
  const number = typeof port === 'number' ? port : 0
  return number >= 1 && number <= 65_535 ? [] : [invalid(field, number, 'must be between 1 and 65535, inclusive')]
}

/** An IANA service name, as ports of containers have them. */
export function portNameProblems(field: string, name: string): FieldProblem[] {
  const problems: string[] = []
  if (name.length > 15) problems.push('must be no more than 15 characters')
  if (!/^[-a-z0-9]+$/.test(name)) problems.push('must contain only alpha-numeric characters (a-z, 0-9), and hyphens (-)')
  if (!/[a-z]/.test(name)) problems.push('must contain at least one letter (a-z)')
  if (name.includes('--')) problems.push('must not contain consecutive hyphens')
  if (name.startsWith('-') || name.endsWith('-')) problems.push('must not begin or end with a hyphen')
  return problems.map((why) => invalid(field, name, why))
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
