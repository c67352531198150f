import type { Json, JsonObject } from '@thv/kernel/json'
import { referencesOf } from '../check/references.ts'
import { renderArguments } from '../engine/render-arguments.ts'
import { StepError } from '../engine/step-error.ts'
import type { ArgumentValue, CallPlan, Workflow, WorkflowStep } from '../engine/workflow.ts'
import { evaluate, type Template, TemplateError } from '../template/template.ts'

/**
 * The plan of a run with these parameters, without a call: the steps in order, with conditions and arguments as far as they are known.
 * A template that needs the result of a step is shown as it is written.
 */
export function dryRun(workflow: Workflow, params: JsonObject): string {
  const checked = workflow.parameters?.check(params) ?? { value: params, problems: [] }
  if (checked.problems.length > 0) return `the parameters do not fit: ${checked.problems.join('; ')}\n`
  return outline(workflow, { params: checked.value })
}

/** The same without parameters: every template is shown as it is written. */
export function workflowOutline(workflow: Workflow): string {
  return outline(workflow, undefined)
}

/** Undefined: nothing is known. */
type Scope = JsonObject | undefined

function outline(workflow: Workflow, scope: Scope): string {
  const lines: string[] = []
  for (const [level, steps] of levelsOf(workflow.steps).entries()) {
    lines.push(`${level + 1}. ${steps.length > 1 ? `${steps.length} steps at the same time` : 'one step'}`)
    for (const step of steps) lines.push(...stepLines(step, scope).map((line) => `   ${line}`))
  }
  return `${lines.join('\n')}\n`
}

/** Steps that can start together. */
export function levelsOf(steps: readonly WorkflowStep[]): WorkflowStep[][] {
  const levels: WorkflowStep[][] = []
  const levelOf = new Map<string, number>()
  let left = [...steps]
  while (left.length > 0) {
    const ready = left.filter(({ definition }) => definition.dependsOn.every((id) => levelOf.has(id)))
    if (ready.length === 0) break
    for (const { id } of ready) levelOf.set(id, levels.length)
    levels.push(ready)
    left = left.filter((step) => !ready.includes(step))
  }
  return levels
}

function stepLines(step: WorkflowStep, scope: Scope): string[] {
  const lines: string[] = []
  if (step.type === 'elicitation') lines.push(`${step.id}: ask ${shown(step.message, scope)}`)
  if (step.type === 'tool') lines.push(`${step.id}: call ${step.call.tool} ${argumentText(step.call, scope)}`)
  if (step.type === 'forEach') {
    lines.push(`${step.id}: for each ${step.definition.itemVar} of ${shown(step.collection, scope)}`)
    lines.push(`  call ${step.inner.call.tool} ${argumentText(step.inner.call, scope)}`)
    if (step.inner.condition) lines.push(`  if ${shown(step.inner.condition, scope)}`)
  }
  if (step.condition) lines.push(`  if ${shown(step.condition, scope)}`)
  if (step.definition.dependsOn.length > 0) lines.push(`  after ${step.definition.dependsOn.join(', ')}`)
  const { action, retryCount } = step.definition.onError
  if (retryCount > 0) lines.push(`  up to ${retryCount + 1} tries`)
  if (action === 'continue') lines.push('  goes on if it fails')
  return lines
}

function isKnown(template: Template): boolean {
  return referencesOf(template).every(({ path }) => path[0] === 'params')
}

function shown(template: Template, scope: Scope): string {
  if (!scope || !isKnown(template)) return template.source
  try {
    return JSON.stringify(evaluate(template, scope) ?? null)
  } catch (error) {
    if (error instanceof TemplateError) return `${template.source} (fails: ${error.message})`
    throw error
  }
}

function argumentText(call: CallPlan, scope: Scope): string {
  try {
    return JSON.stringify(renderArguments({ ...call, arguments: known(call.arguments, scope !== undefined) }, scope ?? {}, undefined))
  } catch (error) {
    if (error instanceof StepError) return `(fails: ${error.message})`
    throw error
  }
}

/** Templates that cannot be rendered stand for themselves. */
function known(value: ArgumentValue, hasParams: boolean): ArgumentValue {
  if (value.kind === 'template')
    return hasParams && isKnown(value.template) ? value : { kind: 'constant', value: value.template.source as Json }
  if (value.kind === 'list') return { ...value, items: value.items.map((item) => known(item, hasParams)) }
  return value.kind === 'object'
    ? { ...value, members: value.members.map(([name, member]) => [name, known(member, hasParams)] as const) }
    : value
}
