import type { Json, JsonObject } from '@thv/kernel/json'
import type { Value } from '../template/value.ts'
import { coerced } from './coerce.ts'
import { templateValue } from './render-arguments.ts'
import { StepError } from './step-error.ts'
import type { OutputMember, Workflow } from './workflow.ts'

/** The results of a workflow with `output`. @throws StepError */
export function mapOutput({ output, outputCheck }: Workflow, scope: JsonObject): JsonObject {
  const mapped = membersOf(output ?? new Map(), scope)
  const problems = outputCheck?.check(mapped).problems ?? []
  if (problems.length > 0) throw new StepError(`the output does not fit its schema: ${problems.join('; ')}`, { isFinal: true })
  return mapped
}

/** A member without value and default is left out; the schema says whether it may be. */
function membersOf(members: ReadonlyMap<string, OutputMember>, scope: JsonObject): JsonObject {
  return Object.fromEntries(
    [...members].flatMap(([name, member]): [string, Json][] => {
      const value = memberValue(member, scope)
      return value === undefined ? [] : [[name, value]]
    }),
  )
}

function memberValue({ template, definition, members, field }: OutputMember, scope: JsonObject): Value {
  if (members) return membersOf(members, scope)
  if (!template) return undefined
  const substitute = definition.default as Json | undefined
  let value: Value
  try {
    value = templateValue(template, scope, field)
  } catch (error) {
    if (substitute !== undefined && error instanceof StepError) return substitute
    throw error
  }
  if (value === undefined || value === null) return substitute
  const result = coerced(value, { type: definition.type })
  if ('value' in result) return result.value
  if (substitute !== undefined) return substitute
  throw new StepError(`${field.replace(/^.*?output\./, 'output.')}: ${result.problem}`, { isFinal: true })
}
