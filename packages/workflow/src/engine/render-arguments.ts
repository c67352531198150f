import { isObject, type Json, type JsonObject } from '@thv/kernel/json'
import { evaluate, positionText, render, type Template, TemplateError } from '../template/template.ts'
import type { Value } from '../template/value.ts'
import { coerced } from './coerce.ts'
import { StepError } from './step-error.ts'
import type { ArgumentValue, CallPlan } from './workflow.ts'

/** The arguments of a call, converted to what the tool's schema asks for. @throws StepError */
export function renderArguments(call: CallPlan, scope: JsonObject, schema: JsonObject | undefined): JsonObject {
  const value = argumentValue(call.arguments, scope) ?? {}
  const result = coerced(value, schema)
  if ('problem' in result) throw new StepError(`the arguments do not fit the tool: ${result.problem}`, { isFinal: true })
  return isObject(result.value) ? (result.value as JsonObject) : {}
}

/** A template that gives nothing leaves its argument out. */
function argumentValue(argument: ArgumentValue, scope: JsonObject): Value {
  switch (argument.kind) {
    case 'constant':
      return argument.value
    case 'template':
      return templateValue(argument.template, scope, argument.field)
    case 'list':
      return argument.items.map((item) => argumentValue(item, scope) ?? null)
    default: {
      const members = argument.members.flatMap(([name, member]): [string, Json][] => {
        const value = argumentValue(member, scope)
        return value === undefined ? [] : [[name, value]]
      })
      return Object.fromEntries(members)
    }
  }
}

/** @throws StepError with the field and the column */
export function templateValue(template: Template, scope: JsonObject, field: string): Value {
  return withPosition(template, field, () => evaluate(template, scope))
}

export function templateText(template: Template, scope: JsonObject, field: string): string {
  return withPosition(template, field, () => render(template, scope))
}

function withPosition<T>(template: Template, field: string, work: () => T): T {
  try {
    return work()
  } catch (error) {
    if (!(error instanceof TemplateError)) throw error
    const message = `${lastName(field)}, ${positionText(template.source, error.at)}: ${error.message}`
    throw new StepError(message, { isFinal: true, cause: error })
  }
}

/** Without the number of the step, which says nothing to a client: `arguments.code` of `spec.steps[1].arguments.code`. */
function lastName(field: string): string {
  return field.replace(/^.*?steps\[[0-9]+\]\./, '').replace(/^step\./, '')
}

/** Conditions give a boolean or its text. Nothing is false. @throws StepError */
export function conditionHolds(template: Template | undefined, scope: JsonObject, field: string): boolean {
  if (!template) return true
  const value = templateValue(template, scope, `${field}.condition`)
  if (typeof value === 'boolean') return value
  if (value === undefined || value === null) return false
  if (typeof value === 'string' && /^(?:true|True|TRUE)$/.test(value)) return true
  if (typeof value === 'string' && /^(?:false|False|FALSE)$/.test(value)) return false
  throw new StepError('condition: must give true or false', { isFinal: true })
}
