import type { Conditions } from '@thv/kube'
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
  const conditions = nextConditions(
    group.status?.conditions as Conditions | undefined,
    {
      set: [
        {
          type: MCPGroupCondition.MCPServersChecked,
          status: 'True',
          reason: MCPGroupReason.ListMCPServersCheckSucceeded,
          message: count === 1 ? '1 member names this group' : `${count} members name this group`,
        },
      ],
    },
    { generation, now },
  )
  return {
    ...(generation !== undefined && { observedGeneration: generation }),
    phase: 'Ready',
    servers,
    serverCount: servers.length + serverEntries.length,
    remoteProxies,
    remoteProxyCount: remoteProxies.length,
    serverEntries,
    serverEntryCount: serverEntries.length,
    conditions: [...conditions],
  }
}
