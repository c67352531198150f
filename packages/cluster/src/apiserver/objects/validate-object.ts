import type { FieldProblem, JsonObject } from '@thv/kube-schema/kind-schema'
import { servedObject } from './object-encoder.ts'
import { metaProblems, metaUpdateProblems } from './object-meta.ts'
import { type ServedKind, textAt } from './served-kind.ts'
import { invalid } from './status-error.ts'

export interface ValidationContext {
  /** The object before the write. */
  readonly old?: JsonObject | undefined
  /** The write is of the status subresource. */
  readonly statusOnly?: boolean
}

/** Throws 422 with everything that is wrong with an object in its stored form. */
export function validateObject(kind: ServedKind, object: JsonObject, { old, statusOnly = false }: ValidationContext = {}): void {
  const found = kind.schema.validate(servedObject(kind, object), old === undefined ? undefined : servedObject(kind, old))
  const problems: FieldProblem[] = [
    ...metaProblems(kind, object),
    ...(old === undefined ? [] : metaUpdateProblems(object, old)),
    ...(statusOnly ? found.map(belowStatus) : found),
    ...ruleProblems(kind, object, { old, statusOnly }),
  ]
  // An object that is stored in the form of another group is named as that one.
  const named = kind.conversion === undefined ? kind : { ...kind, group: '' }
  if (problems.length > 0) throw invalid(named, textAt(object, 'metadata', 'name'), problems)
}

function ruleProblems({ rules }: ServedKind, object: JsonObject, { old, statusOnly }: ValidationContext): readonly FieldProblem[] {
  if (statusOnly === true && old !== undefined && rules.validateStatus) return rules.validateStatus(object, old)
  return rules.validate?.(object, old) ?? []
}

/** The real server checks a status on its own, so the sentences about it name fields from there on. */
function belowStatus(problem: FieldProblem): FieldProblem {
  const message = problem.message.replace(': status.', ': ')
  return { ...problem, message, detail: `${problem.field}: ${message}` }
}
