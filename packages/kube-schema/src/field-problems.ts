import type { FieldProblem, FieldReason, Json } from './kind-schema.ts'
import { goJson, goNumber, goQuote } from './values/go-text.ts'

/** How Kubernetes names a problem that belongs to no field. */
export const NO_FIELD = '<nil>'

export function required(field: string, text = ''): FieldProblem {
  return problem('FieldValueRequired', field, withText('Required value', text))
}

export function forbidden(field: string, text: string): FieldProblem {
  return problem('FieldValueForbidden', field, withText('Forbidden', text))
}

export function invalid(field: string, value: Json, text: string): FieldProblem {
  return problem('FieldValueInvalid', field, withText(`Invalid value: ${shown(value)}`, text))
}

/** For values that are shown in a way of their own. */
export function invalidShown(field: string, value: string, text: string): FieldProblem {
  return problem('FieldValueInvalid', field, withText(`Invalid value: ${value}`, text))
}

export function typeInvalid(field: string, value: Json, text: string): FieldProblem {
  return problem('FieldValueTypeInvalid', field, withText(`Invalid value: ${shown(value)}`, text))
}

export function duplicate(field: string, value: Json): FieldProblem {
  return problem('FieldValueDuplicate', field, `Duplicate value: ${shown(value)}`)
}

export function notSupported(field: string, value: Json, supported: readonly string[]): FieldProblem {
  const list = supported.length > 0 ? `supported values: ${supported.map(goQuote).join(', ')}` : ''
  return problem('FieldValueNotSupported', field, withText(`Unsupported value: ${shown(value)}`, list))
}

export function tooLong(field: string, max: number): FieldProblem {
  return problem('FieldValueTooLong', field, `Too long: may not be more than ${max} ${max === 1 ? 'byte' : 'bytes'}`)
}

export function tooMany(field: string, actual: number, max: number): FieldProblem {
  return problem('FieldValueTooMany', field, `Too many: ${actual}: must have at most ${max} ${max === 1 ? 'item' : 'items'}`)
}

export function internalError(field: string, text: string): FieldProblem {
  return problem('InternalError', field, withText('Internal error', text))
}

function problem(reason: FieldReason, field: string, message: string): FieldProblem {
  return { field, reason, message, detail: `${field}: ${message}` }
}

function withText(head: string, text: string): string {
  return text === '' ? head : `${head}: ${text}`
}

function shown(value: Json): string {
  if (typeof value === 'string') return goQuote(value)
  return typeof value === 'number' ? goNumber(value) : goJson(value)
}
