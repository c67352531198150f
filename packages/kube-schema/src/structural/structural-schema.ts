import { compileRules } from '../cel/rule-tree.ts'
import { runRules } from '../cel/run-rules.ts'
import { invalid, NO_FIELD } from '../field-problems.ts'
import type { FieldProblem, JsonObject, KindSchema } from '../kind-schema.ts'
import type { SchemaNode } from '../schema-node.ts'
import { boundedTime, TimeExceeded } from '../values/bounded-time.ts'
import { applyDefaults } from './defaults.ts'
import { embeddedResourceProblems } from './embedded-resources.ts'
import { canTakeLong } from './hostile-patterns.ts'
import { listTypeProblems } from './list-types.ts'
import { mergeOfSchema } from './merge-of-schema.ts'
import { prune } from './prune.ts'
import { type ScalePaths, scaleProblems } from './scale-problems.ts'
import { compileValidator, validateRoot } from './validate-value.ts'

/** The real server counts cost; we give one object this long for all its patterns and rules. */
const VALIDATION_LIMIT_MS = 2000

/** Below this, what `canTakeLong` does not suspect is quick, and the watchdog would cost more than the work. */
const SMALL_OBJECT = 2048

const BLOCKING: ReadonlySet<string> = new Set([
  'FieldValueNotSupported',
  'FieldValueRequired',
  'FieldValueTooLong',
  'FieldValueTooMany',
  'FieldValueTypeInvalid',
])

export interface StructuralOptions {
  /** The scale subresource of the CRD, whose paths are checked on every write. */
  readonly scale?: ScalePaths
  readonly limitMs?: number
}

/** A CRD version's schema, compiled once. Throws for one that `schemaProblems` refuses because of a rule. */
export function structuralSchema(root: SchemaNode, options: StructuralOptions = {}): KindSchema {
  const validateShape = compileValidator(root)
  const { tree, problems: badRules } = compileRules(root)
  if (badRules[0]) throw new Error(`rule ${badRules[0].at}[${badRules[0].index}] does not compile: ${badRules[0].text}`)
  const isRisky = canTakeLong(root)
  const limitMs = options.limitMs ?? VALIDATION_LIMIT_MS

  function problemsOf(object: JsonObject, old: JsonObject | undefined): readonly FieldProblem[] {
    const correlation = old && { node: root, value: object, old }
    const problems = [
      ...validateRoot(validateShape, { value: object, path: '', base: '', correlation }),
      ...scaleProblems(object, options.scale),
      ...embeddedResourceProblems(object, root),
      ...(old && listTypeProblems(old, root).length > 0 ? [] : listTypeProblems(object, root)),
    ]
    if (!tree) return problems
    if (problems.some(({ reason }) => BLOCKING.has(reason))) return [...problems, rulesNotChecked()]
    return [...problems, ...runRules(tree, object, old)]
  }

  return {
    prune: (object) => prune(object, root),
    applyDefaults: (object) => applyDefaults(object, root),
    validate(object, old) {
      if (!isRisky && JSON.stringify(object).length < SMALL_OBJECT) return problemsOf(object, old)
      try {
        return boundedTime(limitMs, () => problemsOf(object, old))
      } catch (error) {
        if (error instanceof TimeExceeded) return [outOfBudget()]
        throw error
      }
    },
    merge: mergeOfSchema(root),
  }
}

function rulesNotChecked(): FieldProblem {
  return invalid(
    NO_FIELD,
    null,
    'some validation rules were not checked because the object was invalid; correct the existing errors to complete validation',
  )
}

function outOfBudget(): FieldProblem {
  return invalid(NO_FIELD, '', 'validation failed due to running out of cost budget, no further validation rules will be run')
}
