import { isIP } from 'node:net'
import { invalid, notSupported } from '@thv/kube-schema/field-problems'
import type { FieldProblem, Json } from '@thv/kube-schema/kind-schema'
import { problem } from '../../../objects/status-error.ts'

/** One problem for each thing that is wrong with a value. */
export function invalidAll(field: string, value: Json, whys: readonly string[]): FieldProblem[] {
  return whys.map((why) => invalid(field, value, why))
}

export function notFoundValue(field: string, value: string): FieldProblem {
  return problem(field, 'FieldValueNotFound', `Not found: ${JSON.stringify(value)}`)
}

export function nonNegative(field: string, value: number | undefined): FieldProblem[] {
  return value === undefined || value >= 0 ? [] : [invalid(field, value, 'must be greater than or equal to 0')]
}

/** One of a few texts; `supported` in the order in which the server lists them. Where there has to be one: `choiceProblems`. */
export function oneOf(field: string, value: string | undefined, supported: readonly string[]): FieldProblem[] {
  return value === undefined || supported.includes(value) ? [] : [notSupported(field, value, supported)]
}

export function addressProblems(field: string, address: string): FieldProblem[] {
  return isIP(address) > 0 && !address.includes('%')
    ? []
    : [invalid(field, address, 'must be a valid IP address, (e.g. 10.9.8.7 or 2001:db8::ffff)')]
}
