import type { Conditions, ConditionUpdate, KubeObject } from '@thv/kube'
import type { WorkloadKind } from '@thv/resources/shared/referencing-workloads'
import { nextConditions } from '../../deployment/status/conditions.ts'

export interface WorkloadReference {
  readonly kind: WorkloadKind
  readonly name: string
}

/** Common to MCPToolConfig and MCPExternalAuthConfig: workloads use them, and they cannot be deleted before. */
export interface ConfigObjectFacts {
  readonly configHash: string
  /** Sorted. */
  readonly workloads: readonly WorkloadReference[]
  readonly conditions: readonly ConditionUpdate[]
  /** Types of conditions that do not apply to this object. */
  readonly absent?: readonly string[]
  readonly now: number
}

export interface ConfigObjectStatus {
  observedGeneration?: number
  configHash: string
  referencingWorkloads: WorkloadReference[]
  conditions: Conditions[number][]
}

/** Both kinds use these words; their own constants are checked against them. */
export const DELETION_BLOCKED = 'DeletionBlocked'
export const REFERENCED_BY_WORKLOADS = 'ReferencedByWorkloads'

export type ConfigObject = KubeObject & { status?: object }

export function conditionsOf({ status }: ConfigObject): Conditions | undefined {
  return status && 'conditions' in status ? (status.conditions as Conditions | undefined) : undefined
}

/** Pure. */
export function configObjectStatus(object: ConfigObject, facts: ConfigObjectFacts): ConfigObjectStatus {
  const { generation, deletionTimestamp } = object.metadata
  const isBlocked = deletionTimestamp !== undefined && facts.workloads.length > 0
  const blocked: ConditionUpdate = {
    type: DELETION_BLOCKED,
    status: 'True',
    reason: REFERENCED_BY_WORKLOADS,
    message: `deletion waits for ${listed(facts.workloads)}: remove the reference there, or delete ${facts.workloads.length === 1 ? 'it' : 'them'}`,
  }
  const conditions = nextConditions(
    conditionsOf(object),
    {
      set: [...facts.conditions, ...(isBlocked ? [blocked] : [])],
      remove: [...(facts.absent ?? []), ...(isBlocked ? [] : [DELETION_BLOCKED])],
    },
    { generation, now: facts.now },
  )
  return {
    ...(generation !== undefined && { observedGeneration: generation }),
    configHash: facts.configHash,
    referencingWorkloads: [...facts.workloads],
    conditions: [...conditions],
  }
}

const MAX_LISTED = 10

function listed(workloads: readonly WorkloadReference[]): string {
  const names = workloads.slice(0, MAX_LISTED).map(({ kind, name }) => `${kind} ${name}`)
  if (workloads.length > MAX_LISTED) names.push(`${workloads.length - MAX_LISTED} more`)
  return names.length > 1 ? `${names.slice(0, -1).join(', ')} and ${names.at(-1)}` : (names[0] ?? 'no workload')
}
