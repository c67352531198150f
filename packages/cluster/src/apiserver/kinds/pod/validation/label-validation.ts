import { labelSelectorProblem, parseLabelSelector } from '@thv/kube/objects/label-selector'
import { tooLong } from '@thv/kube-schema/field-problems'
import type { FieldProblem, JsonObject } from '@thv/kube-schema/kind-schema'
import { qualifiedNameProblems } from '@thv/kube-schema/values/name-checks'
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
