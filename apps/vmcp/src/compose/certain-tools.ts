import type { Workflow, WorkflowStep } from '@thv/workflow/workflow'

/** Tools that a run calls, as far as that is certain before it begins: those of steps without a condition whose failure ends it. Pure. */
export function certainTools({ steps }: Workflow): readonly string[] {
  return [...new Set(steps.flatMap(toolOf))]
}

function toolOf(step: WorkflowStep): readonly string[] {
  if (step.type === 'elicitation' || step.condition !== undefined || step.definition.onError.action === 'continue') return []
  if (step.type === 'tool') return [step.call.tool]
  const { condition, definition, call } = step.inner
  return condition !== undefined || definition.onError.action === 'continue' ? [] : [call.tool]
}
