import type { Workflow, WorkflowStep } from '../engine/workflow.ts'

/** The steps as a Mermaid flowchart. */
export function workflowGraph({ tool, steps }: Workflow): string {
  const names = new Map(steps.map(({ id }, index) => [id, `s${index}`]))
  const lines = [`%% ${tool.name.replaceAll(/[\r\n]/g, ' ')}`, 'flowchart TD']
  for (const step of steps) lines.push(`  ${names.get(step.id)}${shape(step)}`)
  for (const { id, definition, condition } of steps) {
    const label = condition ? `|"${escaped(condition.source)}"| ` : ''
    for (const before of definition.dependsOn) lines.push(`  ${names.get(before)} -->${label === '' ? ' ' : label}${names.get(id)}`)
  }
  return `${lines.join('\n')}\n`
}

function shape(step: WorkflowStep): string {
  const id = escaped(step.id)
  const condition = step.condition && step.definition.dependsOn.length === 0 ? `<br>if ${escaped(step.condition.source)}` : ''
  switch (step.type) {
    case 'elicitation':
      return `{{"${id}<br>ask the user${condition}"}}`
    case 'forEach':
      return `[["${id}<br>each ${escaped(step.definition.itemVar)}: ${escaped(step.inner.call.tool)}${condition}"]]`
    default:
      return `["${id}<br>${escaped(step.call.tool)}${retries(step.definition.onError.retryCount)}${condition}"]`
  }
}

function retries(count: number): string {
  return count > 0 ? `<br>up to ${count + 1} tries` : ''
}

/** Mermaid takes entities inside of quotes. */
function escaped(text: string): string {
  return text.replaceAll(/["#<>&\r\n]/g, (character) => `#${character.charCodeAt(0)};`)
}
