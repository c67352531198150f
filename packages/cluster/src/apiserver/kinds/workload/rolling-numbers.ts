import { invalid } from '@thv/kube-schema/field-problems'
import type { FieldProblem, Json } from '@thv/kube-schema/kind-schema'
import { percentProblems } from '@thv/kube-schema/values/name-checks'
import { invalidAll, nonNegative } from '../pod/validation/problems.ts'

/* A number of pods, or a share of all of them. */

export function shareProblems(field: string, value: Json): FieldProblem[] {
  return typeof value === 'string' ? invalidAll(field, value, percentProblems(value)) : nonNegative(field, Number(value))
}

export function notMoreThanAll(field: string, value: Json): FieldProblem[] {
  return isPercent(value) && shareOf(value) > 100 ? [invalid(field, value, 'must not be greater than 100%')] : []
}

export function shareOf(value: Json): number {
  if (typeof value !== 'string') return Number(value)
  return /^([+-]?\d+)%?$/.test(value) ? Number.parseInt(value, 10) : 0
}

function isPercent(value: Json): boolean {
  return typeof value === 'string' && percentProblems(value).length === 0
}
