import { labelSelectorProblem, parseLabelSelector } from '@thv/kube/label-selector'
import { tooLong } from '../../schema/field-problems.ts'
import type { FieldProblem, JsonObject } from '../kind-schema.ts'
import { qualifiedNameProblems } from '../name-checks.ts'
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

/** Undefined when the selector makes no sense. */
export function selectorMatches(selector: JsonObject, labels: JsonObject): boolean | undefined {
  const given = selector as Parameters<typeof parseLabelSelector>[0]
  return labelSelectorProblem(given) === undefined ? parseLabelSelector(given).matches(labels as Record<string, string>) : undefined
}
