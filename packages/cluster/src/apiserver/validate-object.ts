import type { FieldProblem, JsonObject } from './kind-schema.ts'
import { servedObject } from './object-encoder.ts'
import { metaProblems, metaUpdateProblems } from './object-meta.ts'
import { type ServedKind, textAt } from './served-kind.ts'
import { invalid } from './status-error.ts'

/** Throws 422 with everything that is wrong with an object in its stored form; `old` is what it is to replace. */
export function validateObject(kind: ServedKind, object: JsonObject, old?: JsonObject): void {
  const problems: FieldProblem[] = [
    ...metaProblems(kind, object),
    ...(old === undefined ? [] : metaUpdateProblems(object, old)),
    ...kind.schema.validate(servedObject(kind, object), old === undefined ? undefined : servedObject(kind, old)),
    ...(kind.rules.validate?.(object, old) ?? []),
  ]
  if (problems.length > 0) throw invalid(kind, textAt(object, 'metadata', 'name'), problems)
}
