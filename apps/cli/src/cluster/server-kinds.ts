import type { KubeObject, ResourceType } from '@thv/kube/objects/types'
import { mcpRemoteProxy } from '@thv/resources/kinds/mcp-remote-proxy/schema'
import { mcpServer } from '@thv/resources/kinds/mcp-server/schema'
import { virtualMcpServer } from '@thv/resources/kinds/virtual-mcp-server/schema'
import { resourceTypeOf } from '@thv/resources/schema/kind-definition'

/** The kinds that MCP clients talk to: each has a `status.url`. */
export const SERVER_KINDS: readonly ResourceType<KubeObject>[] = [mcpServer, mcpRemoteProxy, virtualMcpServer].map((kind) =>
  resourceTypeOf(kind),
)
