import type { Conditions, ConditionUpdate } from '@thv/kube'
import { MCPServerEntryCondition, MCPServerEntryPhase, MCPServerEntryReason } from '@thv/resources/kinds/mcp-server-entry/constants'
import { normaliseMcpServerEntry } from '@thv/resources/kinds/mcp-server-entry/normalise'
import type { MCPServerEntry } from '@thv/resources/kinds/mcp-server-entry/schema'
import { nextConditions } from '../../deployment/status/conditions.ts'
import { checkEntry, type EntryContext } from './checks.ts'

type Status = NonNullable<MCPServerEntry['status']>

/** Ready when all checks pass; otherwise Failed, and the overall condition names what failed. Pure. */
export function entryStatus(entry: MCPServerEntry, context: EntryContext): Status {
  const { generation } = entry.metadata
  const checks = checkEntry(entry, context)
  const failed = checks.conditions.filter(({ status }) => status !== 'True')
  const isReady = failed.length === 0 && checks.problems.length === 0
  const group = normaliseMcpServerEntry(entry).spec.groupRef?.name

  const overall = {
    status: isReady ? 'True' : 'False',
    reason: isReady ? MCPServerEntryReason.ConfigValid : MCPServerEntryReason.ConfigInvalid,
    message: isReady
      ? 'a VirtualMCPServer can use the entry'
      : [...failed.map(({ type, message }) => `${type}: ${message}`), ...checks.problems].join('; '),
  } as const
  const set: ConditionUpdate[] = [
    { type: MCPServerEntryCondition.Ready, ...overall },
    { type: MCPServerEntryCondition.Valid, ...overall },
    ...checks.conditions,
  ]
  const told = new Set(set.map(({ type }) => type))
  const conditions = nextConditions(
    entry.status?.conditions as Conditions | undefined,
    { set, remove: Object.values(MCPServerEntryCondition).filter((type) => !told.has(type)) },
    { generation, now: context.now },
  )
  return {
    ...(generation !== undefined && { observedGeneration: generation }),
    phase: isReady ? MCPServerEntryPhase.Ready : MCPServerEntryPhase.Failed,
    ...(group !== undefined && { group }),
    conditions: [...conditions],
  }
}
