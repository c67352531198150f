import type { CompositeOnError, CompositeStep } from '@thv/resources/shared/composite/composite-step'
import type { CompositeTool } from '@thv/resources/shared/composite/composite-tool'
import type { Problem } from '@thv/runconfig/field'
import { checkWorkflow } from '@thv/workflow/check-workflow'

/** A problem whose message is a whole sentence that names the field. */
export interface VmcpProblem extends Problem {
  readonly isSentence?: boolean
}

type Report = (path: string, message: string) => void

const MAX_TOOLS = 64
const MAX_STEPS = 100

/** The rules of the resource's schema beyond single fields, then the one check of composite tools with its own texts. */
export function compositeProblems(tools: readonly CompositeTool[]): readonly VmcpProblem[] {
  const problems: VmcpProblem[] = []
  const report: Report = (path, message) => problems.push({ path, message })
  if (tools.length > MAX_TOOLS) report('compositeTools', `has more than ${MAX_TOOLS} tools`)
  const names = new Map<string, number>()
  for (const [index, tool] of tools.slice(0, MAX_TOOLS).entries()) {
    const path = `compositeTools[${index}]`
    const first = names.get(tool.name)
    if (first !== undefined) report(`${path}.name`, `is the name of compositeTools[${first}] already`)
    else names.set(tool.name, index)
    const before = problems.length
    checkShape(tool, path, report)
    if (problems.length > before) continue
    for (const { field, message } of checkWorkflow(tool, path).problems) problems.push({ path: field, message, isSentence: true })
  }
  return problems
}

function checkShape({ steps, output }: CompositeTool, path: string, report: Report): void {
  if (steps.length === 0) report(`${path}.steps`, 'is empty')
  if (steps.length > MAX_STEPS) report(`${path}.steps`, `has more than ${MAX_STEPS} steps`)
  for (const [index, step] of steps.entries()) {
    const at = `${path}.steps[${index}]`
    checkType(step, at, report)
    checkOnError(step.onError, `${at}.onError`, report)
    checkOnError(step.step?.onError, `${at}.step.onError`, report)
  }
  for (const name of output?.required ?? [])
    if (!Object.hasOwn(output?.properties ?? {}, name)) report(`${path}.output.required`, `names ${name}, which is not in properties`)
}

type StepType = NonNullable<CompositeStep['type']>

/** Fields that belong to one type of step; the first ones are required there. */
const OWN: Readonly<
  Record<StepType, { readonly required: readonly (keyof CompositeStep)[]; readonly more: readonly (keyof CompositeStep)[] }>
> = {
  tool: { required: ['tool'], more: ['arguments'] },
  elicitation: { required: ['message'], more: ['schema', 'onDecline', 'onCancel'] },
  forEach: { required: ['collection', 'step'], more: ['itemVar', 'maxParallel', 'maxIterations'] },
}

function checkType(step: CompositeStep, path: string, report: Report): void {
  const { type = 'tool' } = step
  for (const field of OWN[type].required) if (step[field] === undefined) report(`${path}.${field}`, `is required beside type ${type}`)
  for (const [other, { required, more }] of Object.entries(OWN)) {
    if (other === type) continue
    for (const field of [...required, ...more])
      if (step[field] !== undefined) report(`${path}.${field}`, `must not stand beside type ${type}`)
  }
}

function checkOnError(onError: CompositeOnError | undefined, path: string, report: Report): void {
  if (onError === undefined) return
  const { action, retryCount, maxRetries, retryDelay } = onError
  if (action === 'retry' && (retryCount ?? maxRetries ?? 0) === 0) report(`${path}.retryCount`, 'must be at least 1 beside action retry')
  if (retryDelay !== undefined && retryCount === undefined && maxRetries === undefined)
    report(`${path}.retryDelay`, 'has no effect without retryCount')
}
