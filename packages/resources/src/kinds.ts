import { mcpExternalAuthConfig } from './kinds/mcp-external-auth-config/schema.ts'
import { mcpGroup } from './kinds/mcp-group/schema.ts'
import { mcpRegistry } from './kinds/mcp-registry/schema.ts'
import { mcpRemoteProxy } from './kinds/mcp-remote-proxy/schema.ts'
import { mcpServer } from './kinds/mcp-server/schema.ts'
import { mcpServerEntry } from './kinds/mcp-server-entry/schema.ts'
import { mcpToolConfig } from './kinds/mcp-tool-config/schema.ts'
import { virtualMcpCompositeToolDefinition } from './kinds/virtual-mcp-composite-tool-definition/schema.ts'
import { virtualMcpServer } from './kinds/virtual-mcp-server/schema.ts'
import type { KindDefinition } from './schema/kind-definition.ts'

/** All custom resources, in the order in which people meet them. */
export const KINDS: readonly KindDefinition[] = [
  mcpServer,
  mcpRemoteProxy,
  mcpGroup,
  virtualMcpServer,
  virtualMcpCompositeToolDefinition,
  mcpRegistry,
  mcpToolConfig,
  mcpExternalAuthConfig,
  mcpServerEntry,
]
