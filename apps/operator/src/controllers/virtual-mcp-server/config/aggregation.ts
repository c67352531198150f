import type { ConditionUpdate } from '@thv/kube'
import { normaliseMcpToolConfig } from '@thv/resources/kinds/mcp-tool-config/normalise'
import type { CanonicalAggregation, CanonicalWorkloadTools } from '@thv/resources/kinds/virtual-mcp-server/config-normalise'
import { VirtualMCPServerCondition as Condition, VirtualMCPServerReason as Reason } from '@thv/resources/kinds/virtual-mcp-server/constants'
import { WorkloadReason } from '@thv/resources/shared/workload-conditions'
import type { AggregationConfig, WorkloadToolsConfig } from '@thv/vmcpconfig/vmcp-config'
import type { Blocker } from '../../../deployment/contribution.ts'
import { validity } from '../../../references/judge-tool-config.ts'
import type { Lookup } from '../../../references/lookup.ts'

/** The aggregation as the file has it. */
export type AggregationDocument = Omit<AggregationConfig, 'conflictResolutionConfig'> & {
  readonly conflictResolutionConfig: Partial<AggregationConfig['conflictResolutionConfig']>
}

export interface Aggregated {
  readonly document: AggregationDocument
  readonly blockers: readonly Blocker[]
}

/** With MCPToolConfigs resolved. A filter protects, so a reference that leads nowhere blocks. Pure. */
export function aggregationOf(aggregation: CanonicalAggregation, lookup: Pick<Lookup, 'toolConfig'>): Aggregated {
  const blockers: Blocker[] = []
  const tools = aggregation.tools.map((entry, index) => {
    const resolved = withToolConfig(entry, lookup)
    if ('problem' in resolved) {
      const { reason, message } = resolved.problem
      blockers.push({ condition: Condition.Valid, reason, message: `spec.config.aggregation.tools[${index}].toolConfigRef: ${message}` })
    }
    return 'problem' in resolved ? plain(entry) : resolved.tools
  })
  const { conflictResolutionConfig: given, ...rest } = aggregation
  const { prefixFormat, priorityOrder, winners, selectorArgument } = given
  const conflictResolutionConfig = {
    prefixFormat,
    ...(priorityOrder.length > 0 && { priorityOrder }),
    ...(Object.keys(winners).length > 0 && { winners }),
    ...(rest.conflictResolution === 'selector' && { selectorArgument }),
  }
  return { document: { ...rest, conflictResolutionConfig, tools }, blockers }
}

type WithConfig = { readonly tools: WorkloadToolsConfig } | { readonly problem: { readonly reason: string; readonly message: string } }

/** A filter of the entry wins over that of the MCPToolConfig; overrides are joined, and those of the entry win. */
function withToolConfig(entry: CanonicalWorkloadTools, lookup: Pick<Lookup, 'toolConfig'>): WithConfig {
  const { toolConfigRef: ref } = entry
  if (ref === undefined) return { tools: plain(entry) }
  const config = lookup.toolConfig(ref.name)
  if (config === undefined) {
    const message = `MCPToolConfig ${ref.name} does not exist: create it, or remove the reference`
    return { problem: { reason: WorkloadReason.ToolConfigNotFound, message } }
  }
  const verdict = validity(config)
  if (verdict.status !== 'True')
    return { problem: { reason: Reason.ValidationFailed, message: `MCPToolConfig ${ref.name} cannot be used: ${verdict.message}` } }
  const { spec } = normaliseMcpToolConfig(config)
  const own = plain(entry)
  return {
    tools: {
      ...own,
      filter: own.excludeAll || own.filter.length > 0 ? own.filter : spec.toolsFilter,
      overrides: { ...spec.toolsOverride, ...own.overrides },
    },
  }
}

function plain({ workload, filter, exclude, excludeAll, overrides }: CanonicalWorkloadTools): WorkloadToolsConfig {
  return { workload, filter, exclude, excludeAll, overrides: overrides as WorkloadToolsConfig['overrides'] }
}

/** Names of backends in the spec. */
export interface NamedBackend {
  readonly field: string
  readonly name: string
}

/** The condition about names that are no member of the group; none without such names. */
export function unknownNames(names: readonly NamedBackend[], members: ReadonlySet<string>): ConditionUpdate[] {
  const unknown = names.filter(({ name }) => !members.has(name))
  if (unknown.length === 0) return []
  const list = unknown.map(({ field, name }) => `${field} (${name})`).join(', ')
  return [
    {
      type: Condition.BackendNamesResolved,
      status: 'False',
      reason: Reason.UnknownBackend,
      message: `Without effect, because no member of the group has the name: ${list}. Correct the names, or add the members.`,
    },
  ]
}
