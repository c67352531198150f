import { configHash } from '@thv/kernel/config-hash'
import { normaliseMcpToolConfig } from '@thv/resources/kinds/mcp-tool-config/normalise'
import { WorkloadCondition, WorkloadReason } from '@thv/resources/shared/workload-conditions'
import { blocked } from '../../deployment/contribution.ts'
import { validity } from '../../references/judge-tool-config.ts'
import type { Lookup } from '../../references/lookup.ts'
import { contributes, nothing, type Resolved, type RunConfigDocument } from '../contribution.ts'

export interface ToolConfigArgs {
  readonly toolConfigRef: { readonly name: string } | undefined
  /** `spec.tools`, where there is no reference. */
  readonly tools?: readonly string[]
  readonly lookup: Pick<Lookup, 'toolConfig'>
}

/** Which tools clients see. A filter protects, so a reference that leads nowhere blocks. */
export function resolveToolConfig({ toolConfigRef, tools = [], lookup }: ToolConfigArgs): Resolved {
  if (toolConfigRef === undefined) return tools.length === 0 ? nothing : contributes({ runConfig: { tools_filter: tools } })

  const condition = WorkloadCondition.ToolConfigValidated
  const { name } = toolConfigRef
  const config = lookup.toolConfig(name)
  if (config === undefined) {
    const message = `spec.toolConfigRef names MCPToolConfig ${name}, which does not exist: create it, or remove the reference`
    return blocked({ condition, reason: WorkloadReason.ToolConfigNotFound, message })
  }
  // Judged again: its own status may be about an earlier version of it.
  const { status, reason, message } = validity(config)
  if (status !== 'True') return blocked({ condition, reason, message: `MCPToolConfig ${name} cannot be used: ${message}` })

  const { spec } = normaliseMcpToolConfig(config)
  const runConfig: RunConfigDocument = {}
  if (spec.toolsFilter.length > 0) runConfig.tools_filter = spec.toolsFilter
  if (Object.keys(spec.toolsOverride).length > 0) runConfig.tools_override = spec.toolsOverride
  return contributes({
    runConfig,
    conditions: [
      { type: condition, status: 'True', reason: WorkloadReason.ToolConfigValid, message: `MCPToolConfig ${name} is in use: ${message}` },
    ],
    status: { toolConfigHash: configHash(spec) },
  })
}
