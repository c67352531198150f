import type { ConditionUpdate } from '@thv/kube'
import { WorkloadCondition, WorkloadReason } from '@thv/resources/shared/workload-conditions'
import type { Lookup } from '../../references/lookup.ts'
import { contributes, nothing, type Resolved } from '../contribution.ts'

/** The group of the workload. It is nothing that the workload needs to run, so it never blocks, and it is not in the RunConfig: no pod is replaced for it. */
export function resolveGroupRef({ groupRef, lookup }: { groupRef: { name: string } | undefined; lookup: Pick<Lookup, 'group'> }): Resolved {
  if (groupRef === undefined) return nothing
  const { name } = groupRef
  return contributes({ conditions: [judge(name, lookup)], status: { group: name } })
}

function judge(name: string, lookup: Pick<Lookup, 'group'>): ConditionUpdate {
  const type = WorkloadCondition.GroupRefValidated
  const group = lookup.group(name)
  if (group === undefined || group.metadata.deletionTimestamp !== undefined) {
    const message = `spec.groupRef names MCPGroup ${name}, which does not exist: create it, or remove the reference`
    return { type, status: 'False', reason: WorkloadReason.GroupRefNotFound, message }
  }
  if (group.status?.phase !== 'Ready') {
    const message = `MCPGroup ${name} is not ready yet: look at its conditions if this stays`
    return { type, status: 'False', reason: WorkloadReason.GroupRefNotReady, message }
  }
  return { type, status: 'True', reason: WorkloadReason.GroupRefIsValid, message: `belongs to MCPGroup ${name}` }
}
