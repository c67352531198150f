import { jsonEqual } from '@thv/kernel/json'
import type { CanonicalVirtualMCPServerSpec } from '@thv/resources/kinds/virtual-mcp-server/normalise'
import { normaliseVirtualMcpServer } from '@thv/resources/kinds/virtual-mcp-server/normalise'
import type { VirtualMCPServer } from '@thv/resources/kinds/virtual-mcp-server/schema'
import type { WorkloadPlan } from '../../../deployment/deployment-plan.ts'

/** Fields of the spec that the file has no words for. */
export function unsupportedFields(given: VirtualMCPServer['spec'], spec: CanonicalVirtualMCPServerSpec): WorkloadPlan['unsupported'] {
  const { sessionStorage: storage } = spec
  const parts: [boolean, string][] = [
    [given.config?.telemetry !== undefined && !jsonEqual(spec.config.telemetry, NO_TELEMETRY), 'spec.config.telemetry'],
    [storage?.provider === 'redis', 'spec.sessionStorage.provider redis'],
  ]
  return parts.filter(([isUsed]) => isUsed).map(([, field]) => ({ field, middleware: 'is not built' }))
}

/** The defaults, which the API server fills in wherever the block is written. */
const NO_TELEMETRY = normaliseVirtualMcpServer({ spec: { groupRef: { name: 'x' }, incomingAuth: { type: 'anonymous' } } }).spec.config
  .telemetry
