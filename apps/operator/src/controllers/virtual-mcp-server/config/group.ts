import type { ConditionUpdate } from '@thv/kube'
import { VirtualMCPServerCondition as Condition, VirtualMCPServerReason as Reason } from '@thv/resources/kinds/virtual-mcp-server/constants'
import type { Blocker } from '../../../deployment/contribution.ts'
import type { Lookup } from '../../../references/lookup.ts'

/** Whether the group is there. Without one there is nothing to serve. */
export function groupCondition(
  ref: { readonly name: string } | undefined,
  lookup: Pick<Lookup, 'group'>,
): { readonly blockers: readonly Blocker[]; readonly conditions: readonly ConditionUpdate[] } {
  // Without a name the spec itself is reported.
  if (ref === undefined) return { blockers: [], conditions: [] }
  const { name } = ref
  const condition = Condition.GroupRefValidated
  const group = lookup.group(name)
  if (group === undefined || group.metadata.deletionTimestamp !== undefined) {
    const message = `spec.groupRef names MCPGroup ${name}, which does not exist in this namespace: create it or correct the name`
    return { blockers: [{ condition, reason: Reason.GroupRefNotFound, message }], conditions: [] }
  }
  if (group.status?.phase !== 'Ready') {
    const message = `MCPGroup ${name} is not ready yet: see its status if this stays`
    return { blockers: [{ condition, reason: Reason.GroupRefNotReady, message }], conditions: [] }
  }
  return {
    blockers: [],
    conditions: [{ type: condition, status: 'True', reason: Reason.GroupRefValid, message: `MCPGroup ${name} is joined` }],
  }
}
