import { labelSelectorProblem, parseLabelSelector } from '@thv/kube/label-selector'
import { forbidden, invalid, required, tooLong } from '../../schema/field-problems.ts'
import type { FieldProblem, JsonObject } from '../kind-schema.ts'
import { labelValueProblems, qualifiedNameProblems } from '../name-checks.ts'
import { textAt } from '../served-kind.ts'
import { textsAt } from './fields.ts'
import { invalidAll } from './problems.ts'

const MAX_ANNOTATION_BYTES = 256 * 1024

export function annotationProblems(annotations: JsonObject | undefined, path: string): FieldProblem[] {
  let bytes = 0
  const problems = Object.entries(annotations ?? {}).flatMap(([key, value]) => {
    bytes += Buffer.byteLength(key) + Buffer.byteLength(String(value))
    return invalidAll(path, key, qualifiedNameProblems(key.toLowerCase()))
  })
  return bytes > MAX_ANNOTATION_BYTES ? [...problems, tooLong(path, MAX_ANNOTATION_BYTES)] : problems
}

const SETS = ['In', 'NotIn']
const PRESENCE = ['Exists', 'DoesNotExist']

export interface RequirementOptions {
  /** Operators with one number, which only nodes are selected by. */
  readonly ordered?: boolean
  readonly anyValue?: boolean
}

export function requirementProblems(requirement: JsonObject, path: string, options: RequirementOptions = {}): FieldProblem[] {
  const operator = textAt(requirement, 'operator')
  const values = textsAt(requirement, 'values')
  const problems: FieldProblem[] = []
  if (SETS.includes(operator)) {
    if (values.length === 0) problems.push(required(`${path}.values`, "must be specified when `operator` is 'In' or 'NotIn'"))
  } else if (PRESENCE.includes(operator)) {
    if (values.length > 0) problems.push(forbidden(`${path}.values`, "may not be specified when `operator` is 'Exists' or 'DoesNotExist'"))
  } else if (options.ordered === true && ['Gt', 'Lt'].includes(operator)) {
    if (values.length !== 1) problems.push(required(`${path}.values`, "must be specified single value when `operator` is 'Lt' or 'Gt'"))
  } else problems.push(invalid(`${path}.operator`, operator, 'not a valid selector operator'))
  const key = textAt(requirement, 'key')
  problems.push(...invalidAll(`${path}.key`, key, qualifiedNameProblems(key)))
  if (options.anyValue === true) return problems
  return [...problems, ...values.flatMap((value, index) => invalidAll(`${path}.values[${index}]`, value, labelValueProblems(value)))]
}

/** Undefined when the selector makes no sense. */
export function selectorMatches(selector: JsonObject, labels: JsonObject): boolean | undefined {
  const given = selector as Parameters<typeof parseLabelSelector>[0]
  return labelSelectorProblem(given) === undefined ? parseLabelSelector(given).matches(labels as Record<string, string>) : undefined
}
