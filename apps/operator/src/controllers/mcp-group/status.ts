import type { Conditions, ConditionUpdate } from '@thv/kube'
import { MCPGroupCondition, MCPGroupReason } from '@thv/resources/kinds/mcp-group/constants'
import type { MCPGroup } from '@thv/resources/kinds/mcp-group/schema'
import { nextConditions } from '../../deployment/status/conditions.ts'

export interface Members {
  readonly servers: readonly string[]
  readonly remoteProxies: readonly string[]
  readonly serverEntries: readonly string[]
}

/** Members of the group. A group is ready as soon as they are known, even if there are none: the health of members does not count. */
export function groupStatus(group: MCPGroup, members: Members, now: number): NonNullable<MCPGroup['status']> {
  const { generation } = group.metadata
  const servers = members.servers.toSorted()
  const remoteProxies = members.remoteProxies.toSorted()
  const serverEntries = members.serverEntries.toSorted()
  const count = servers.length + remoteProxies.length + serverEntries.length
  const conditions = checked(group, now, {
    status: 'True',
    reason: MCPGroupReason.ListMCPServersCheckSucceeded,
    message: count === 1 ? '1 member names this group' : `${count} members name this group`,
  })
  return {
    ...(generation !== undefined && { observedGeneration: generation }),
    phase: 'Ready',
    servers,
    serverCount: servers.length + serverEntries.length,
    remoteProxies,
    remoteProxyCount: remoteProxies.length,
    serverEntries,
    serverEntryCount: serverEntries.length,
    conditions,
  }
}

const MAX_MESSAGE = 1_024

/** Members that were known before stay listed: their proxies run on. */
export function unlistedStatus(group: MCPGroup, problems: readonly string[], now: number): NonNullable<MCPGroup['status']> {
  const { generation } = group.metadata
  const conditions = checked(group, now, {
    status: 'False',
    reason: MCPGroupReason.ListMCPServersCheckFailed,
    message: problems.join('; ').slice(0, MAX_MESSAGE),
  })
  return { ...group.status, ...(generation !== undefined && { observedGeneration: generation }), phase: 'Failed', conditions }
}

function checked(group: MCPGroup, now: number, verdict: Omit<ConditionUpdate, 'type'>) {
  const before = group.status?.conditions as Conditions | undefined
  const set = [{ type: MCPGroupCondition.MCPServersChecked, ...verdict }]
  return [...nextConditions(before, { set }, { generation: group.metadata.generation, now })]
}
