import type { MCPRemoteProxy } from '@thv/resources/kinds/mcp-remote-proxy/schema'
import type { MCPServer } from '@thv/resources/kinds/mcp-server/schema'
import type { MCPServerEntry } from '@thv/resources/kinds/mcp-server-entry/schema'

/** The members of a group, each list sorted by name. */
export interface GroupMembers {
  readonly servers: readonly MCPServer[]
  readonly remoteProxies: readonly MCPRemoteProxy[]
  readonly entries: readonly MCPServerEntry[]
}
