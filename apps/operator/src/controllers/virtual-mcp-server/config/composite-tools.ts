import type { ConditionUpdate } from '@thv/kube'
import type { VirtualMCPCompositeToolDefinition } from '@thv/resources/kinds/virtual-mcp-composite-tool-definition/schema'
import { VirtualMCPServerCondition as Condition, VirtualMCPServerReason as Reason } from '@thv/resources/kinds/virtual-mcp-server/constants'
import type { CompositeTool } from '@thv/resources/shared/composite/composite-tool'
import { checkWorkflow } from '@thv/workflow/check-workflow'

export interface ReferencedTools {
  readonly tools: readonly CompositeTool[]
  readonly conditions: readonly ConditionUpdate[]
}

/**
 * The tools of the definitions that the spec names. One that is missing or invalid is left out and reported; the rest is served. They are
 * judged here, because the status of a definition may be about an earlier version of it. Pure.
 */
export function referencedTools(
  refs: readonly { readonly name: string }[],
  definition: (name: string) => VirtualMCPCompositeToolDefinition | undefined,
): ReferencedTools {
  if (refs.length === 0) return { tools: [], conditions: [] }
  const tools: CompositeTool[] = []
  const missing: string[] = []
  const invalid: string[] = []
  for (const { name } of refs) {
    const found = definition(name)
    if (found === undefined || found.metadata.deletionTimestamp !== undefined) {
      missing.push(name)
      continue
    }
    const [problem] = checkWorkflow(found.spec).problems
    if (problem === undefined) tools.push(found.spec)
    else invalid.push(`${name}: ${problem.message}`)
  }
  return { tools, conditions: [verdict({ missing, invalid })] }
}

function verdict({ missing, invalid }: { missing: readonly string[]; invalid: readonly string[] }): ConditionUpdate {
  const type = Condition.CompositeToolRefsValidated
  const notThere = missing.length === 0 ? [] : [`There is no VirtualMCPCompositeToolDefinition ${missing.join(', ')}: create it.`]
  const notValid = invalid.map((what) => `VirtualMCPCompositeToolDefinition ${what}`)
  const message = [...notThere, ...notValid].join(' ')
  if (missing.length > 0) return { type, status: 'False', reason: Reason.CompositeToolRefNotFound, message }
  if (invalid.length > 0) return { type, status: 'False', reason: Reason.CompositeToolRefInvalid, message }
  return { type, status: 'True', reason: Reason.CompositeToolRefsValid, message: 'all definitions are used' }
}
