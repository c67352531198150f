import type { ConditionUpdate } from '@thv/kube'
import { VirtualMCPServerCondition as Condition, VirtualMCPServerReason as Reason } from '@thv/resources/kinds/virtual-mcp-server/constants'
import type { CanonicalVirtualMCPServerSpec } from '@thv/resources/kinds/virtual-mcp-server/normalise'
import { compact } from '@thv/resources/schema/normalize'
import type { SessionStorageConfig } from '@thv/vmcpconfig/vmcp-config'

export interface Storage {
  readonly document: Partial<SessionStorageConfig> | undefined
  readonly conditions: readonly ConditionUpdate[]
}

/** Where sessions are kept, and a warning when several pods do not share them. */
export function sessionStorageOf({ sessionStorage, replicas }: CanonicalVirtualMCPServerSpec, scale: number | undefined): Storage {
  const isRedis = sessionStorage?.provider === 'redis'
  const count = replicas ?? scale ?? 1
  const type = Condition.SessionStorageWarning
  if (isRedis) {
    const { address, db, keyPrefix } = sessionStorage
    const document = compact({ provider: 'redis' as const, address, db, keyPrefix })
    return { document, conditions: [{ type, status: 'False', reason: Reason.SessionStorageConfigured, message: 'sessions are in Redis' }] }
  }
  if (count > 1) {
    const message = `${count} pods do not share sessions: a client that reaches another pod must begin a new one. Set spec.sessionStorage to Redis, or replicas to 1.`
    return { document: undefined, conditions: [{ type, status: 'True', reason: Reason.SessionStorageMissingForReplicas, message }] }
  }
  return {
    document: undefined,
    conditions: [{ type, status: 'False', reason: Reason.SessionStorageWarningNotApplicable, message: 'there is at most one pod' }],
  }
}
