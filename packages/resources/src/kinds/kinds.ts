import type { KindDefinition } from '../schema/kind-definition.ts'
import { mcpExternalAuthConfig } from './mcp-external-auth-config/schema.ts'
import { mcpGroup } from './mcp-group/schema.ts'
import { mcpRegistry } from './mcp-registry/schema.ts'
import { mcpRemoteProxy } from './mcp-remote-proxy/schema.ts'
import { mcpServer } from './mcp-server/schema.ts'
import { mcpServerEntry } from './mcp-server-entry/schema.ts'
import { mcpToolConfig } from './mcp-tool-config/schema.ts'
import { virtualMcpCompositeToolDefinition } from './virtual-mcp-composite-tool-definition/schema.ts'
import { virtualMcpServer } from './virtual-mcp-server/schema.ts'

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
