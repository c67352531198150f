import { jsonEqual } from '@thv/kernel/json'
import { invalid, notSupported, tooLong, typeInvalid } from '../field-problems.ts'
import type { Json } from '../kind-schema.ts'
import type { SchemaNode } from '../schema-node.ts'
import { GoRegexpError, goRegexp } from '../values/go-regexp.ts'
import { goJson, goNumber, goQuote } from '../values/go-text.ts'
import { formatCheck } from './formats.ts'
import type { Failure } from './outcome.ts'
import { fieldOf } from './shape-checks.ts'
import type { Subject } from './validate-value.ts'

export interface ScalarChecks {
  enumOf(subject: Subject): Failure[]
  /** Stops at the first failure, as the real server does. */
  text(subject: Subject): Failure[]
  format(subject: Subject): Failure[]
  number(subject: Subject): Failure[]
}

export function scalarChecks(node: SchemaNode): ScalarChecks {
  const check = formatCheck(node.format)
  return {
    enumOf: (subject) => enumFailure(node.enum ?? [], subject),
    text: (subject) => textFailure(node, subject),
    format: (subject) => (check && !check(String(subject.value)) ? [wrongFormat(node.format ?? '', subject)] : []),
    number: (subject) => numberFailures(node, subject),
  }
}

function enumFailure(allowed: readonly Json[], subject: Subject): Failure[] {
  if (allowed.length === 0) return []
  // null is never found: the real server has no type to compare it by
  if (subject.value !== null && allowed.some((value) => jsonEqual(value, subject.value))) return []
  const names = allowed.map((value) => (typeof value === 'string' ? value : goJson(value)))
  const text = `${subject.path} in body should be one of [${names.join(' ')}]`
  return [{ text, problem: notSupported(fieldOf(subject), subject.value, names) }]
}

function textFailure(node: SchemaNode, subject: Subject): Failure[] {
  const value = String(subject.value)
  const { path } = subject
  const length = node.maxLength === undefined && node.minLength === undefined ? 0 : codePoints(value)
  if (node.maxLength !== undefined && length > node.maxLength) {
    const text = `${path} in body should be at most ${node.maxLength} chars long`
    return [{ text, problem: tooLong(fieldOf(subject), node.maxLength) }]
  }
  if (node.minLength !== undefined && length < node.minLength) {
    return [plain(subject, `${path} in body should be at least ${node.minLength} chars long`)]
  }
  const mismatch = node.pattern ? patternProblem(node.pattern, value) : undefined
  return mismatch === undefined ? [] : [plain(subject, `${path} in body should match '${mismatch}'`)]
}

function patternProblem(pattern: string, value: string): string | undefined {
  try {
    return goRegexp(pattern).test(value) ? undefined : pattern
  } catch (error) {
    if (error instanceof GoRegexpError) return `${pattern}, but pattern is invalid: ${error.message}`
    throw error
  }
}

function wrongFormat(format: string, subject: Subject): Failure {
  const value = String(subject.value)
  const text = `${subject.path} in body must be of type ${format}: ${goQuote(value)}`
  return { text, problem: typeInvalid(fieldOf(subject), value, text) }
}

function numberFailures(node: SchemaNode, subject: Subject): Failure[] {
  const value = Number(subject.value)
  const bound = (limit: number) => goNumber(Number.isInteger(value) ? Math.trunc(limit) : limit)
  const { multipleOf, minimum, maximum, exclusiveMinimum, exclusiveMaximum } = node
  const failures: string[] = []
  if (multipleOf !== undefined && !isMultiple(value, multipleOf)) failures.push(`should be a multiple of ${bound(multipleOf)}`)
  if (minimum !== undefined && (exclusiveMinimum ? value <= minimum : value < minimum)) {
    failures.push(`should be greater than ${exclusiveMinimum ? '' : 'or equal to '}${bound(minimum)}`)
  }
  if (maximum !== undefined && (exclusiveMaximum ? value >= maximum : value > maximum)) {
    failures.push(`should be less than ${exclusiveMaximum ? '' : 'or equal to '}${bound(maximum)}`)
  }
  return failures.map((what) => plain(subject, `${subject.path} in body ${what}`))
}

function isMultiple(value: number, factor: number): boolean {
  const quotient = factor < 1 ? (1 / factor) * value : value / factor
  return Math.abs(quotient - Math.round(quotient)) < 1e-9
}

function plain(subject: Subject, text: string): Failure {
  return { text, problem: invalid(fieldOf(subject), subject.value, text) }
}

function codePoints(text: string): number {
  let count = 0
  for (const _char of text) count += 1
  return count
}
