import { configHash } from '@thv/kernel/config-hash'
import type { ConditionUpdate } from '@thv/kube'
import { MCPToolConfigCondition, MCPToolConfigReason } from '@thv/resources/kinds/mcp-tool-config/constants'
import { normaliseMcpToolConfig } from '@thv/resources/kinds/mcp-tool-config/normalise'
import type { MCPToolConfig } from '@thv/resources/kinds/mcp-tool-config/schema'
import { validateToolConfig } from '@thv/resources/kinds/mcp-tool-config/validation'

/** The conditions of the object itself. Pure. */
export function judgeToolConfig(config: Pick<MCPToolConfig, 'spec'>): { configHash: string; conditions: ConditionUpdate[] } {
  const { spec } = normaliseMcpToolConfig(config)
  return { configHash: configHash(spec), conditions: [validity(config)] }
}

/** The condition Valid as the controller writes it; users of the object call this and do not wait for the status. */
export function validity(config: Pick<MCPToolConfig, 'spec'>): ConditionUpdate {
  const { problems, warnings } = validateToolConfig(normaliseMcpToolConfig(config).spec)
  const type = MCPToolConfigCondition.Valid
  if (problems.length > 0) {
    return { type, status: 'False', reason: MCPToolConfigReason.ValidationFailed, message: problems.join('; ') }
  }
  const message = warnings.length === 0 ? 'the configuration can be used' : `the configuration can be used, but ${warnings.join('; ')}`
  return { type, status: 'True', reason: MCPToolConfigReason.ValidationSucceeded, message }
}
