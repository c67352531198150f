import { VirtualMCPServerCondition as Condition, VirtualMCPServerReason as Reason } from '@thv/resources/kinds/virtual-mcp-server/constants'
import type { CanonicalVirtualMCPServerSpec } from '@thv/resources/kinds/virtual-mcp-server/normalise'
import type { Blocker } from '../../../deployment/contribution.ts'

/** Limits that could not be kept block: each pod would allow the whole number. Pure. */
export function rateLimitBlockers(
  { config }: CanonicalVirtualMCPServerSpec,
  { replicas, hasSharedStore }: { readonly replicas: number; readonly hasSharedStore: boolean },
): Blocker[] {
  if (config.rateLimiting === undefined || hasSharedStore || replicas <= 1) return []
  const message = `spec.config.rateLimiting: ${replicas} pods cannot keep limits together in memory: set spec.sessionStorage with provider redis, or replicas to 1`
  return [{ condition: Condition.Valid, reason: Reason.ValidationFailed, message }]
}
