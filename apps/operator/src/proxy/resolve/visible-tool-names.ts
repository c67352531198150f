import type { ConditionUpdate } from '@thv/kube'
import { WorkloadCondition, WorkloadReason } from '@thv/resources/shared/workload-conditions'

/** Tools by their name at the server, as far as they are renamed. */
export type ToolOverrides = Readonly<Record<string, { readonly name?: string }>>

/** Warns of policies that name a tool by the name that clients see: policies decide by the name at the server. */
export function visibleToolNames(policies: readonly string[], overrides: ToolOverrides): ConditionUpdate[] {
  const realNames = new Map(
    Object.entries(overrides).flatMap(([real, { name }]) => (name === undefined || name === real ? [] : [[name, real]])),
  )
  const named = new Set(policies.flatMap(toolsOf))
  // A name that is in use at the server, too, may be meant so.
  const mistaken = [...named].filter((name) => realNames.has(name) && !Object.hasOwn(overrides, name)).toSorted()
  if (mistaken.length === 0) return []
  const pairs = mistaken.map((name) => `Tool::${JSON.stringify(name)} (the server calls it ${JSON.stringify(realNames.get(name))})`)
  return [
    {
      type: WorkloadCondition.AuthzVisibleToolNames,
      status: 'True',
      reason: WorkloadReason.PolicyNamesVisibleTool,
      message: `spec.authzConfig: policies name tools by names that only clients see, which match nothing: ${pairs.join(', ')}`,
    },
  ]
}

const TOOL = /\bTool\s*::\s*("(?:[^"\\]|\\.)*")/g

function toolsOf(policy: string): string[] {
  return [...policy.matchAll(TOOL)].flatMap(([, literal = '']) => {
    try {
      return [JSON.parse(literal) as string]
    } catch {
      return [] // an escape of Cedar that JSON has not; no tool has such a name
    }
  })
}
